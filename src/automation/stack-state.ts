import { gunzipSync } from "node:zlib";
import type { Properties } from "../../providers/provider";

export interface RecordedResource {
  urn: string;
  type: string;
  id?: string;
  parent?: string;
  dependencies?: string[];
  inputs?: Properties;
  outputs?: Properties;
  /** When the engine last changed it, ISO 8601. */
  modified?: string;
  /** It was replaced, and its deletion is pending. */
  delete?: boolean;
}

/** A stack's state, secrets encrypted, in the form that `pulumi stack import` takes. */
export interface StackState {
  version: number;
  deployment: {
    resources?: RecordedResource[] | null;
    pending_operations?: unknown[] | null;
    [field: string]: unknown;
  };
}

const GZIP_MAGIC = 0x1f;

/** The state in a checkpoint, as `pulumi stack export` writes it. @param checkpoint as a backend keeps it, compressed or not */
export function stateOf(checkpoint: Buffer): StackState {
  const text = checkpoint[0] === GZIP_MAGIC ? gunzipSync(checkpoint) : checkpoint;
  const { checkpoint: inner, ...versions } = JSON.parse(text.toString("utf8")) as {
    version: number;
    checkpoint?: { latest?: StackState["deployment"] | null };
  };
  return { ...versions, deployment: inner?.latest ?? {} };
}

/** The URNs in a state, parents first. */
export function urnsIn({ deployment }: StackState): string[] {
  return (deployment.resources ?? []).map(({ urn }) => urn);
}

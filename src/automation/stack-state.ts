import type { OutputMap } from "@pulumi/pulumi/automation/stack";
import type { Deployment } from "@pulumi/pulumi/automation/workspace";
import { MASKED, maskSecrets } from "../../providers/literal";
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
  /** It is not to be deleted. */
  protect?: boolean;
  /** It was replaced, and its deletion is pending. */
  delete?: boolean;
}

/** A stack's state, secrets encrypted, in the form that `pulumi stack import` takes. */
export interface StackState extends Deployment {
  deployment: {
    resources?: RecordedResource[] | null;
    pending_operations?: unknown[] | null;
    [field: string]: unknown;
  };
}

/** The URNs in a state, parents first. */
export function urnsIn({ deployment }: StackState): string[] {
  return (deployment.resources ?? []).map(({ urn }) => urn);
}

/** What the stack itself exports; secrets read `[secret]`. */
export function outputsIn(state: StackState | undefined): OutputMap {
  const stack = state?.deployment.resources?.find(({ type }) => type === "pulumi:pulumi:Stack");
  return Object.fromEntries(
    Object.entries(stack?.outputs ?? {}).map(([name, output]) => {
      const value = maskSecrets(output);
      return [name, { value, secret: value !== output && value === MASKED }];
    }),
  );
}

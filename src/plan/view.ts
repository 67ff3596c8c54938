import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import type { Cluster } from "../../providers/kubernetes/cluster";
import type { Lookup } from "../../providers/kubernetes/lookup";
import type { Snapshot } from "../../providers/snapshot";
import { type AnyKind, ownerOf } from "../../stacks/contract/kind";
import type { KindObject } from "../../stacks/contract/object";
import { readReferenced } from "../../stacks/contract/references";
import type { Referenced, RunContext } from "../../stacks/contract/run-context";

/**
 * The world around one object, as plans of it and its program see it. How it is read, and with which rights, is up to who plans; and
 * so is what cannot be told: a method throws, or notes that and answers with what is known.
 */
export interface View {
  /** Looks for the object that a manifest names. @param snapshot what a preview has read already, if it is for one */
  look(manifest: Manifest, snapshot?: Snapshot): Promise<Lookup>;
  /** What tells the cluster from others; `undefined` without the right to read that. */
  cluster(): Promise<Cluster | undefined>;
  /** The object's live objects of the types in {@link LiveState.reads}, as its program must see them. */
  owned(): Promise<LiveObject[]>;
  /** What its kind watches for the object, as its program must see it. */
  watched(): Promise<LiveObject[]>;
  /** All live objects that carry the object's mark. */
  marked(): Promise<readonly LiveObject[]>;
  /** What others made, and is deleted with the object. */
  deletedWith(): Promise<readonly LiveObject[]>;
}

/** What a program depends on besides its object. */
export interface ProgramInputs {
  cluster: Cluster | undefined;
  /** Of the types in {@link LiveState.reads}. */
  owned: LiveObject[];
  watched: LiveObject[];
  referenced: Referenced;
}

/** Reads what an object's program depends on. @throws Error when what the object refers to cannot be told */
export async function readInputs(view: View, kind: AnyKind, object: KindObject): Promise<ProgramInputs> {
  const [owned, watched, referenced, cluster] = await Promise.all([
    view.owned(),
    view.watched(),
    readReferenced({ find: (target) => view.look(target as Manifest) }, kind, object),
    view.cluster(),
  ]);
  return { cluster, owned, watched, referenced };
}

/** What the program of an object is told of it. @param recorded the ids of what the last update recorded in the stack */
export function programContext(
  kind: AnyKind,
  object: Pick<LiveObject, "metadata">,
  { cluster, ...inputs }: ProgramInputs,
  recorded: Iterable<string>,
): RunContext {
  return { owner: ownerOf(kind, object), recorded: new Set(recorded), ...inputs, ...(cluster && { cluster }) };
}

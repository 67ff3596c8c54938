import { TerminalError } from "../../providers/errors";
import type { LiveObject } from "../../providers/kubernetes/client";
import { ownerUidOf } from "../../providers/kubernetes/ownership";
import { ownerDescription, statusOf } from "../../stacks/contract/kind";
import { type KindObject, objectId, parseObjectId } from "../../stacks/contract/object";
import type { UpdateFailure } from "../automation/failures";
import type { Program } from "../automation/language-server";
import type { Reconcile } from "./context";
import { ownedOf } from "./kind-cache";
import type { ProgramInputs } from "./program-inputs";

/** An object's program, after the object has claimed what it may hold alone. */
export interface ClaimedProgram {
  /** A failure for each thing that another object holds; the program leaves it out. */
  conflicts: UpdateFailure[];
  /** @param object the object with its finalizer */
  of(object: LiveObject): Program;
  /** After the update: the object holds what it claims, and nothing else. */
  retainClaims(): void;
}

/**
 * Claims what an object may hold alone, and prepares the program of its update.
 *
 * @throws TerminalError naming the holder, where the program cannot do without or has never succeeded
 */
export function claimProgram(reconcile: Reconcile, parsed: KindObject, inputs: ProgramInputs): ClaimedProgram {
  const { context, item, object } = reconcile;
  const { kind, claims, cache, cluster } = context;
  const exclusive = kind.capabilities.claims;
  const { uid } = object.metadata;
  const { owned, watched } = inputs;
  const withheld = new Set<string>();
  const claimed = () => (exclusive?.of(parsed, watched) ?? []).filter((id) => !withheld.has(id));
  const mayWithhold = exclusive?.withhold !== undefined && statusOf(object).stack !== undefined;
  const conflicts: UpdateFailure[] = [];
  for (let taken = take(reconcile, claimed(), watched); taken !== undefined; ) {
    if (!mayWithhold) throw new TerminalError("Conflict", taken.message);
    withheld.add(taken.id);
    conflicts.push({ errorClass: "terminal", reason: "Conflict", message: taken.message });
    taken = take(reconcile, claimed(), watched);
  }
  const program = withheld.size > 0 ? (exclusive?.withhold?.(parsed, withheld) ?? parsed) : parsed;
  return {
    conflicts,
    of: (held) => {
      const recorded = new Set(statusOf(held).stack?.resources?.map(({ id }) => id));
      const owner = { uid, description: ownerDescription(kind, item.key) };
      const cached = ownedOf({ ...reconcile, cache });
      return () => kind.program(program, { owner, owned, recorded, watched, cached, ...(cluster && { cluster }) });
    },
    retainClaims: () => claims.retain(uid, claimed()),
  };
}

/** Takes all of these ids, or says which of them another object holds. */
function take(
  { context: { claims, cache }, item, object }: Reconcile,
  ids: string[],
  watched: readonly LiveObject[],
): { id: string; message: string } | undefined {
  const conflict = claims.take(object.metadata.uid, ids, item, (id) => {
    const live = watched.find((object) => objectId(object) === id) ?? cache.view(id)?.object;
    return live && ownerUidOf(live);
  });
  if (conflict === undefined) return undefined;
  const { id, holder } = conflict;
  const [name, owner] = [parseObjectId(id).name, cache.describeOwner(holder) ?? holder];
  return { id, message: `${name} belongs to ${owner}; Kindstack takes it when the owner releases it` };
}

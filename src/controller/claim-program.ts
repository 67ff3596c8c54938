import { TerminalError } from "../../providers/errors";
import type { LiveObject } from "../../providers/kubernetes/client";
import { KEEP_CONTENTS, ownerUidOf } from "../../providers/kubernetes/ownership";
import { statusOf } from "../../stacks/contract/kind";
import { type KindObject, objectId, parseObjectId } from "../../stacks/contract/object";
import type { UpdateFailure } from "../automation/failures";
import type { Program } from "../automation/program";
import type { ProgramInputs } from "../plan/view";
import type { Step } from "./context";
import type { ObjectStack } from "./stack";

/** An object's program, after the object has claimed what it may hold alone. */
export interface ClaimedProgram {
  /** A failure for each thing that another object holds; the program leaves it out. */
  conflicts: UpdateFailure[];
  /** @param object the object as it is when its program runs */
  of(object: LiveObject): Program;
  /** After the update: the object holds what it claims, and nothing else. */
  retainClaims(): void;
}

/**
 * Claims what an object may hold alone, and prepares the program of its update.
 *
 * @throws TerminalError naming the holder, where the program cannot do without or has never succeeded
 */
export async function claimProgram(
  step: Step<"item" | "object", "kind" | "cache" | "claims">,
  stack: Pick<ObjectStack, "program">,
  parsed: KindObject,
  inputs: ProgramInputs,
): Promise<ClaimedProgram> {
  const { context, object } = step;
  const { kind, claims } = context;
  const exclusive = kind.capabilities.claims;
  const { uid } = object.metadata;
  const { watched } = inputs;
  const withheld = new Set<string>();
  const all = (await exclusive?.of(parsed, watched)) ?? [];
  const claimed = () => all.filter((id) => !withheld.has(id));
  const mayWithhold = exclusive?.withhold !== undefined && statusOf(object).stack !== undefined;
  const conflicts: UpdateFailure[] = [];
  for (let taken = take(step, claimed(), watched); taken !== undefined; ) {
    if (!mayWithhold) throw new TerminalError("Conflict", taken.message);
    withheld.add(taken.id);
    conflicts.push({ errorClass: "terminal", reason: "Conflict", message: taken.message });
    taken = take(step, claimed(), watched);
  }
  const program = withheld.size > 0 ? ((await exclusive?.withhold?.(parsed, withheld)) ?? parsed) : parsed;
  return {
    conflicts,
    of: stack.program(program, inputs),
    retainClaims: () => exclusive && claims.retain(uid, claimed()),
  };
}

/** Takes all of these ids, or says which of them another object holds. */
function take(
  { context: { claims, cache }, item, object }: Step<"item" | "object", "claims" | "cache">,
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
  return {
    id,
    message: `${name} belongs to ${owner}; Kindstack takes it when the owner releases it. ${KEEP_CONTENTS}`,
  };
}

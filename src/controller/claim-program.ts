import { failureOf, TerminalError } from "../../providers/errors";
import type { LiveObject } from "../../providers/kubernetes/client";
import { KEEP_CONTENTS, ownerUidOf } from "../../providers/kubernetes/ownership";
import { statusOf } from "../../stacks/contract/kind";
import { type KindObject, objectId, parseObjectId } from "../../stacks/contract/object";
import { metadataDigest, observingMetadata, referenceRecords } from "../../stacks/contract/references";
import { runProgram } from "../../stacks/contract/run-program";
import type { UpdateFailure } from "../automation/failures";
import type { Program } from "../automation/program";
import { type ProgramInputs, programContext } from "../plan/view";
import type { Step } from "./context";
import { ownedOf, recordedIds } from "./kind-cache";
import { logOf } from "./work";

type ProgramStep = Step<"object" | "state" | "logger", "kind" | "cache">;

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
  step: ProgramStep & Step<"item", "claims">,
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
    of: bindProgram(step, program, inputs),
    retainClaims: () => exclusive && claims.retain(uid, claimed()),
  };
}

/** An object's program with what it may know, from the object as it is when its update begins. */
export function bindProgram(step: ProgramStep, parsed: KindObject, inputs: ProgramInputs): ClaimedProgram["of"] {
  const { context, object, state, logger } = step;
  const { kind } = context;
  return (current) => {
    const known = programContext(kind, object, inputs, recordedIds(current));
    const told = { ...known, cached: ownedOf(step), log: logOf(logger, "program") };
    return async () => {
      const references = await referenceRecords(kind, parsed, inputs.referenced);
      state.reads = { references };
      const observed = observingMetadata(parsed, () => {
        state.reads = { references, metadata: metadataDigest(object.metadata) };
      });
      try {
        await runProgram(kind, observed, told);
      } catch (error) {
        if (failureOf(error).errorClass === "bug") logger.error({ err: error }, "the kind's program failed");
        throw error;
      }
    };
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

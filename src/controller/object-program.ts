import { TerminalError } from "../../providers/errors";
import type { LiveObject } from "../../providers/kubernetes/client";
import { ownerUidOf } from "../../providers/kubernetes/ownership";
import { ownerDescription, statusOf } from "../../stacks/contract/kind";
import { type KindObject, objectId } from "../../stacks/contract/object";
import type { UpdateFailure } from "../automation/engine";
import type { Program } from "../automation/language-server";
import { ownedOf, type Turn } from "./context";
import { readSurroundings, type Surroundings } from "./program-inputs";
import { asBegun } from "./repair";

/** An object's program, and what it goes by. */
export interface ObjectProgram extends Surroundings {
  /** @param held the object with its finalizer */
  of(held: LiveObject): Program;
  /**
   * @returns a failure for each thing that the object claims and another one holds; the program leaves those out
   * @throws TerminalError naming the holder, where the program cannot do without or was never brought about
   */
  takeClaims(): UpdateFailure[];
  /** The object's update has succeeded: it holds what it claims, and nothing else. */
  settleClaims(): void;
}

/**
 * Prepares the program of an object's update.
 *
 * @param waiting what ended and is not to be replaced yet
 */
export async function prepareProgram(
  turn: Turn,
  parsed: KindObject,
  waiting: readonly string[] = [],
): Promise<ObjectProgram> {
  const { context, key, object } = turn;
  const { kind, client, claims, cluster } = context;
  const { uid } = object.metadata;
  const around = await readSurroundings(client, kind, key, object, ownedOf(turn));
  const owned = asBegun(around.owned, waiting);
  const { observed } = around;
  const withheld = new Set<string>();
  const claimed = () => (kind.claims?.(parsed, observed) ?? []).filter((id) => !withheld.has(id));
  return {
    owned,
    observed,
    of: (held) => {
      const recorded = new Set(statusOf(held).stack?.resources?.map(({ id }) => id));
      const owner = { uid, description: ownerDescription(kind, key) };
      const program = withheld.size > 0 ? (kind.withhold?.(parsed, withheld) ?? parsed) : parsed;
      const cached = ownedOf(turn);
      return () => kind.program(program, { owner, owned, recorded, observed, cached, ...(cluster && { cluster }) });
    },
    takeClaims: () => {
      const mayWithhold = kind.withhold !== undefined && statusOf(object).stack !== undefined;
      const failures: UpdateFailure[] = [];
      for (;;) {
        const conflict = takeClaims(turn, claimed(), observed);
        if (conflict === undefined) return failures;
        if (!mayWithhold) throw new TerminalError("Conflict", conflict.message);
        withheld.add(conflict.id);
        failures.push({ errorClass: "terminal", reason: "Conflict", message: conflict.message });
      }
    },
    settleClaims: () => claims.settle(uid, claimed()),
  };
}

/** Takes all of these ids, or says which of them another object holds. */
function takeClaims(
  { context, key, object }: Turn,
  ids: string[],
  observed: readonly LiveObject[],
): { id: string; message: string } | undefined {
  const { claims, queueKey, view, describeOwner } = context;
  const conflict = claims.take(object.metadata.uid, ids, queueKey(key), (id) => {
    const live = observed.find((object) => objectId(object) === id) ?? view(id)?.object;
    return live && ownerUidOf(live);
  });
  if (conflict === undefined) return undefined;
  const { id, holder } = conflict;
  const message = `${id.split("/").at(-1)} belongs to ${describeOwner(holder) ?? holder}; it will be taken when that lets go of it`;
  return { id, message };
}

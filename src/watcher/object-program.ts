import { TerminalError } from "../../providers/errors";
import type { LiveObject } from "../../providers/kubernetes/client";
import { ownerUidOf } from "../../providers/kubernetes/ownership";
import { ownerDescription, statusOf } from "../../stacks/contract/kind";
import { type KindObject, objectId } from "../../stacks/contract/object";
import type { Program } from "../automation/language-server";
import { asBegun } from "./repair";
import { readSurroundings, type Surroundings } from "./surroundings";
import { ownedOf, type Turn } from "./turn";

/** An object's program, and what it goes by. */
export interface ObjectProgram extends Surroundings {
  /** @param held the object with its finalizer */
  of(held: LiveObject): Program;
  /** @throws TerminalError naming the holder, when somebody else holds what the object claims */
  takeClaims(): void;
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
  const claimed = () => kind.claims?.(parsed, observed) ?? [];
  return {
    owned,
    observed,
    of: (held) => {
      const recorded = new Set(statusOf(held).stack?.resources?.map(({ id }) => id));
      const owner = { uid, description: ownerDescription(kind, key) };
      return () => kind.program(parsed, { owner, owned, recorded, observed, ...(cluster && { cluster }) });
    },
    takeClaims: () => takeClaims(turn, claimed(), observed),
    settleClaims: () => claims.settle(uid, claimed()),
  };
}

function takeClaims({ context, key, object }: Turn, ids: string[], observed: readonly LiveObject[]): void {
  const { claims, queueKey, view, describeOwner } = context;
  const conflict = claims.take(object.metadata.uid, ids, queueKey(key), (id) => {
    const live = observed.find((object) => objectId(object) === id) ?? view(id)?.object;
    return live && ownerUidOf(live);
  });
  if (conflict === undefined) return;
  const name = conflict.id.split("/").at(-1);
  throw new TerminalError(
    "Conflict",
    `${name} belongs to ${describeOwner(conflict.holder) ?? conflict.holder}; it will be taken when that lets go of it`,
  );
}

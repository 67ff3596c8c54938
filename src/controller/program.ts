import { failureOf, TerminalError } from "../../providers/errors";
import { known, type LiveObject, type ObjectType } from "../../providers/kubernetes/client";
import { KEEP_CONTENTS, OWNER_ANNOTATION, OWNER_UID_LABEL, ownerUidOf } from "../../providers/kubernetes/ownership";
import type { ProgramLog } from "../../stacks/contract/capabilities";
import { ownerDescription, ownerOf, statusOf } from "../../stacks/contract/kind";
import { type KindObject, objectId, parseObjectId } from "../../stacks/contract/object";
import {
  metadataDigest,
  observingMetadata,
  type Referenced,
  readReferenced,
  referenceRecords,
} from "../../stacks/contract/references";
import { runProgram } from "../../stacks/contract/run-program";
import { watchedObjects } from "../../stacks/contract/watched";
import type { UpdateFailure } from "../automation/failures";
import type { Program } from "../automation/program";
import type { Reconcile } from "./context";
import { ownedOf, recordedIds } from "./kind-cache";
import { findUnlisted, refuseStale } from "./stale-list";

/** What a program depends on besides its object. */
export interface ProgramInputs {
  /** Of the types in {@link LiveState.reads}. */
  owned: LiveObject[];
  watched: LiveObject[];
  referenced: Referenced;
}

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
 * Asks the API server what an object's program has to know: what it does not see it does not register, and what is not
 * registered any more is deleted. Kinds that depend on nothing in the cluster cost no request. What the object has from a
 * predecessor carries another UID; only the caches lead to it.
 *
 * @throws ApiError when the API server cannot tell
 */
export async function readProgramInputs(reconcile: Reconcile, parsed: KindObject): Promise<ProgramInputs> {
  const { client, kind } = reconcile.context;
  const { uid, namespace } = reconcile.object.metadata;
  const description = ownerDescription(kind, reconcile.item.key);
  const isInherited = (object: LiveObject) => ownerUidOf(object) !== uid;
  const expected = [...recordedIds(reconcile.object)];
  // A list is of the object's own namespace.
  const isElsewhere = ({ metadata }: LiveObject) =>
    kind.scope === "Namespaced" && metadata.namespace !== undefined && metadata.namespace !== namespace;
  const owned = (kind.capabilities.liveState?.reads ?? []).map(async (read) => {
    const isRead = ({ apiVersion, kind: type }: ObjectType) => apiVersion === read.apiVersion && type === read.kind;
    const cached = ownedOf(reconcile).filter((object) => isRead(object) && isInherited(object));
    const [{ items }, ...found] = await Promise.all([
      client.list(read, { labelSelector: `${OWNER_UID_LABEL}=${uid}`, namespace }),
      ...cached.map((object) => known(client.find(object))),
    ]);
    const inherited = found
      .filter((object) => object !== undefined)
      .filter((object) => object.metadata.annotations?.[OWNER_ANNOTATION] === description && isInherited(object));
    const recorded = expected.filter((id) => isRead(parseObjectId(id)));
    const unlisted = (await findUnlisted(client, [...items, ...inherited], recorded)).filter(
      (one) => !isInherited(one),
    );
    const elsewhere = unlisted.filter(isElsewhere);
    refuseStale(unlisted.filter((object) => !isElsewhere(object)));
    return [...items, ...inherited, ...elsewhere];
  });
  const [lists, watched, referenced] = await Promise.all([
    Promise.all(owned),
    readWatched(reconcile, expected),
    readReferenced(client, kind, parsed),
  ]);
  return { owned: lists.flat(), watched, referenced };
}

/** What the kind watches for the object; what the caches or the status know of it is in it. */
async function readWatched({ context, item }: Reconcile, recorded: readonly string[]): Promise<LiveObject[]> {
  const { cache, client, kind } = context;
  const listed = await watchedObjects(client, kind, item.key);
  const { watches = [] } = kind.capabilities;
  const isWatched = (object: ObjectType & Pick<LiveObject, "metadata">) =>
    watches.some(
      (watch) =>
        watch.apiVersion === object.apiVersion &&
        watch.kind === object.kind &&
        watch.keysOf(object as LiveObject).includes(item.key),
    );
  const types = new Set(watches.map(({ apiVersion, kind: type }) => `${apiVersion}/${type}`));
  const known = recorded.filter((id) => {
    const { apiVersion, kind: type } = parseObjectId(id);
    return types.has(`${apiVersion}/${type}`);
  });
  const expected = new Set([...known, ...cache.watched(item.key).map(objectId)]);
  refuseStale((await findUnlisted(client, listed, [...expected])).filter(isWatched));
  return listed;
}

/**
 * Claims what an object may hold alone, and prepares the program of its update.
 *
 * @throws TerminalError naming the holder, where the program cannot do without or has never succeeded
 */
export function claimProgram(reconcile: Reconcile, parsed: KindObject, inputs: ProgramInputs): ClaimedProgram {
  const { context, object } = reconcile;
  const { kind, claims } = context;
  const exclusive = kind.capabilities.claims;
  const { uid } = object.metadata;
  const { watched } = inputs;
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
    of: bindProgram(reconcile, program, inputs),
    retainClaims: () => exclusive && claims.retain(uid, claimed()),
  };
}

function programLog(logger: Reconcile["logger"]): ProgramLog {
  const write = (level: keyof ProgramLog) => (message: string, fields?: object) =>
    logger[level]({ ...fields, source: "program" }, message);
  return { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
}

/** An object's program with what it may know, from the object as it is when its update begins. */
export function bindProgram(
  reconcile: Reconcile,
  parsed: KindObject,
  { owned, watched, referenced }: ProgramInputs,
): ClaimedProgram["of"] {
  const { context, object, state, logger } = reconcile;
  const { kind, cluster } = context;
  return (current) => {
    const recorded = new Set(statusOf(current).stack?.resources?.map(({ id }) => id));
    const owner = ownerOf(kind, object);
    const cached = ownedOf(reconcile);
    const log = programLog(logger);
    const references = referenceRecords(kind, parsed, referenced);
    const known = { owner, owned, recorded, watched, cached, referenced, log, ...(cluster && { cluster }) };
    return async () => {
      state.reads = { references };
      const observed = observingMetadata(parsed, () => {
        state.reads = { references, metadata: metadataDigest(object.metadata) };
      });
      try {
        await runProgram(kind, observed, known);
      } catch (error) {
        if (failureOf(error).errorClass === "bug") logger.error({ err: error }, "the kind's program failed");
        throw error;
      }
    };
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
  return {
    id,
    message: `${name} belongs to ${owner}; Kindstack takes it when the owner releases it. ${KEEP_CONTENTS}`,
  };
}

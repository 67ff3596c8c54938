import { PROVIDER_PROPERTY } from "../../providers/dynamic";
import { errorMessageOf } from "../../providers/errors";
import type { Manifest } from "../../providers/kubernetes/client";
import { OBJECT_STUB } from "../../providers/kubernetes/object";
import type { ObjectInputs } from "../../providers/kubernetes/object-inputs";
import { describeConflict, OWNER_ANNOTATION } from "../../providers/kubernetes/ownership";
import { sqlStateOf } from "../../providers/postgres/errors";
import { ROW_STUB } from "../../providers/postgres/row";
import { findRowConflict } from "../../providers/postgres/row-conflict";
import type { RowInputs, RowOutputs } from "../../providers/postgres/row-inputs";
import { objectId } from "../../stacks/contract/object";
import type { PlannedChange, PlannedOperation } from "../automation/planned-changes";
import type { ClusterView } from "./cluster-view";
import type { ObjectPlan } from "./report";

/** Something that an update needs and that has another owner. */
export interface Conflict {
  /** See {@link objectId}; absent for a row, which cannot be handed over. */
  id?: string;
  /** Who has it, as {@link OWNER_ANNOTATION} says. */
  holder?: string;
  /** With the reason that the update's failure would have. */
  message: string;
}

/** The plan for one object, and its effects on other objects. */
export interface Planned {
  plan: ObjectPlan;
  /** The object as {@link OWNER_ANNOTATION} would name it. */
  owner: string;
  /** What happens to Kubernetes objects, by {@link objectId}. */
  touched: ReadonlyMap<string, PlannedOperation>;
  conflicts: readonly Conflict[];
  /** Why conflicts may be unseen. */
  unseen: readonly string[];
}

/** The id of the Kubernetes object that a change is about, if it is about one. */
export function touchedObject({ inputs, old }: PlannedChange): string | undefined {
  const manifest = (inputs ?? old?.inputs)?.manifest as Manifest | undefined;
  return manifest && objectId(manifest);
}

/** Looks for what would make the changes of one stack fail. */
export type ConflictFinder = (changes: readonly PlannedChange[]) => Promise<Pick<Planned, "conflicts" | "unseen">>;

/** Finds conflicts in the cluster and the database; it only reads. A database that does not answer is asked once. */
export function conflictFinder(cluster: ClusterView): ConflictFinder {
  let unreachable: unknown;
  const findInDatabase: typeof findRowConflict = async (inputs, claimant) => {
    if (unreachable !== undefined) throw unreachable;
    try {
      return await findRowConflict(inputs, claimant);
    } catch (error) {
      if (sqlStateOf(error) === undefined) unreachable = error;
      throw error;
    }
  };
  return async (changes) => {
    const unseen: string[] = [];
    const found = await Promise.all(
      changes.map((change) =>
        findConflict(change, cluster, findInDatabase).catch((error: unknown) => {
          unseen.push(errorMessageOf(error));
          return undefined;
        }),
      ),
    );
    return { conflicts: found.filter((conflict) => conflict !== undefined), unseen };
  };
}

/** @throws Error when it cannot be told */
async function findConflict(
  { operation, inputs, old }: PlannedChange,
  cluster: ClusterView,
  findInDatabase: typeof findRowConflict,
): Promise<Conflict | undefined> {
  if (inputs === undefined || operation === "same" || operation === "delete") return undefined;
  const stub = inputs[PROVIDER_PROPERTY];
  if (stub === OBJECT_STUB && cluster.unreachable === undefined) {
    const { manifest, owner, adopt = true } = inputs as unknown as ObjectInputs;
    const live = await cluster.look(manifest);
    // An update waits for an object that is being deleted, also for one of another owner.
    if (live === undefined || live.metadata.deletionTimestamp !== undefined) return undefined;
    const message = describeConflict(live, ownersOf(owner, old), adopt !== false || operation !== "create");
    if (message === undefined) return undefined;
    const holder = live.metadata.annotations?.[OWNER_ANNOTATION];
    return { id: objectId(manifest), ...(holder && { holder }), message: `Conflict: ${message}` };
  }
  if (stub !== ROW_STUB) return undefined;
  const row = inputs as unknown as RowInputs;
  const { incarnation } = (operation === "update" ? (old?.outputs ?? {}) : {}) as Partial<RowOutputs>;
  const owners = ownersOf(row.owner, old);
  const message = await findInDatabase(row, { owners, ...(incarnation !== undefined && { incarnation }) });
  return message === undefined ? undefined : { message: `RowConflict: ${message}` };
}

/** The owner in the state counts as well: an object that is created again takes over its predecessor's resources. */
function ownersOf({ uid }: { uid: string }, old: PlannedChange["old"]): string[] {
  const former = (old?.outputs.owner as { uid?: string } | undefined)?.uid;
  return former === undefined ? [uid] : [uid, former];
}

/**
 * Adds conflicts to the plans: with live objects, and between new objects. An update that only waits until another of
 * these updates releases something does not fail.
 */
export function addConflicts(all: readonly Planned[]): void {
  for (const planned of all) {
    const { plan, conflicts } = planned;
    const fails: string[] = [];
    for (const { id = "", holder, message } of conflicts) {
      const isFreed = all.some(({ owner, touched }) => owner === holder && touched.get(id) === "delete");
      if (isFreed) plan.notes.push(`waits until these changes are made there: ${message}`);
      else fails.push(message);
    }
    fails.push(...rivalries(planned, all));
    if (fails.length > 0) plan.action = "failed";
    plan.errors.push(...fails);
  }
}

/** Messages about resources that this object would create and another one also creates, or has. */
function rivalries({ touched, owner, conflicts }: Planned, all: readonly Planned[]): string[] {
  const known = new Set(conflicts.map(({ id }) => id));
  const made = [...touched].filter(([id, operation]) => operation === "create" && !known.has(id));
  return made.flatMap(([id]) => {
    const rival = all.find((other) => {
      const operation = other.touched.get(id);
      return other.owner !== owner && operation !== undefined && operation !== "delete";
    });
    return rival === undefined ? [] : [`Conflict: ${id} is also ${rival.owner}'s; only one of them can have it`];
  });
}

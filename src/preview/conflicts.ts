import pLimit from "p-limit";
import { PROVIDER_PROPERTY } from "../../providers/dynamic";
import { errorMessageOf, failureOf } from "../../providers/errors";
import { ownersAllowed } from "../../providers/kubernetes/apply-effect";
import type { Manifest } from "../../providers/kubernetes/client";
import { describeConflict, OWNER_ANNOTATION } from "../../providers/kubernetes/ownership";
import { sqlStateOf } from "../../providers/postgres/errors";
import { ROW_STUB } from "../../providers/postgres/row";
import type { RowInputs, RowOutputs } from "../../providers/postgres/row-inputs";
import { inspectRow } from "../../providers/postgres/row-inspection";
import { objectId } from "../../stacks/contract/object";
import { appliedBefore, ownersOf, type PlannedResource, touchedObject } from "../plan/effects";
import { createdFields } from "../plan/fields";
import type { FieldChange, Gated, ResourcePlan } from "../plan/resource-plan";
import type { ObjectPlan } from "./report";

/** Something that an update needs and that has another owner. */
interface Conflict {
  /** The URN of the resource. */
  urn: string;
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
  resources: readonly PlannedResource[];
  /** What stays as it is, by {@link objectId}. */
  kept: ReadonlySet<string>;
  conflicts: readonly Conflict[];
  /** What could not be looked up, and why. */
  unknown: string[];
  /** The object, where it is to be applied, and whether there is none of its name. */
  applied?: Manifest;
  isNew?: boolean;
  /** What no other object may claim. */
  claims: readonly string[];
  /** What it has of that already. */
  held: ReadonlySet<string>;
}

/** Who claims what only one may have. */
export type Claimant = Pick<Planned, "owner" | "claims">;

/** What is in the way of changes, and what could not be looked up, by the URNs of the resources. */
export interface Obstacles {
  conflicts: Conflict[];
  /** Rows that a creation takes over, with the values that it overwrites. */
  overwritten: Map<string, FieldChange[]>;
  unknown: Map<string, string>;
}

/** Looks for what would make the changes of one stack fail. */
export type ConflictFinder = (resources: readonly PlannedResource[]) => Promise<Obstacles>;

/** Each has a connection of its own: to open one takes longer than to read. */
const DATABASE_READS_AT_ONCE = 4;

/** Finds conflicts with what plans saw, and in the database, which it only reads. A database that does not answer is asked once more, for all. */
export function conflictFinder(): ConflictFinder {
  let unreachable: unknown;
  const limit = pLimit(DATABASE_READS_AT_ONCE);
  const findInDatabase: typeof inspectRow = (inputs, claimant) =>
    limit(async () => {
      if (unreachable !== undefined) throw unreachable;
      try {
        return await inspectRow(inputs, claimant).catch((error: unknown) => {
          // A process that was busy for as long has not looked at the answer either.
          if (failureOf(error).reason !== "ConnectionTimeout") throw error;
          return inspectRow(inputs, claimant);
        });
      } catch (error) {
        if (sqlStateOf(error) === undefined) unreachable = error;
        throw error;
      }
    });
  return async (resources) => {
    const obstacles: Obstacles = { conflicts: [], overwritten: new Map(), unknown: new Map() };
    const finding = resources.map((resource) =>
      findObstacle(resource, findInDatabase, obstacles).catch((error: unknown) => {
        obstacles.unknown.set(resource.change.urn, errorMessageOf(error));
      }),
    );
    await Promise.all(finding);
    return obstacles;
  };
}

/** @throws Error when it cannot be told */
async function findObstacle(
  { change: { urn, operation, inputs, old }, inputs: given, live }: PlannedResource,
  findInDatabase: typeof inspectRow,
  { conflicts, overwritten }: Obstacles,
): Promise<void> {
  if (inputs === undefined || operation === "delete") return;
  if (given !== undefined) {
    const { manifest, owner, adopt = true } = given;
    // An update waits for an object that is being deleted, also for one of another owner.
    if (live === undefined || live.metadata.deletionTimestamp !== undefined) return;
    const owners = ownersAllowed(live, ownersOf(owner, old), appliedBefore(old));
    const message = describeConflict(live, owner, owners, adopt !== false || operation !== "create");
    if (message === undefined) return;
    const holder = live.metadata.annotations?.[OWNER_ANNOTATION];
    conflicts.push({ urn, id: objectId(manifest), ...(holder && { holder }), message: `Conflict: ${message}` });
    return;
  }
  if (inputs[PROVIDER_PROPERTY] !== ROW_STUB) return;
  const row = inputs as unknown as RowInputs;
  const { incarnation, location } = (operation === "update" ? (old?.outputs ?? {}) : {}) as Partial<RowOutputs>;
  const made = incarnation === undefined || location === undefined ? {} : { made: { incarnation, location } };
  const found = await findInDatabase(row, { owners: ownersOf(row.owner, old), ...made });
  if (found.refusal !== undefined) {
    const { reason, message } = found.refusal;
    conflicts.push({ urn, message: `${reason}: ${message}` });
  } else if (found.live !== undefined) {
    const fields = Object.entries(found.live).map(([name, before]) => ({
      ...{ path: `values.${name}`, before, after: row.values[name] },
    }));
    overwritten.set(urn, fields);
  }
}

/** What takes an object from its owner, who may have made it. */
const FREES: readonly Gated[] = ["delete", "release", "orphan"];

/**
 * Adds conflicts to the plans: with live objects, and between new objects. An update that only waits until another of
 * these updates releases something does not fail.
 *
 * @param others objects of the cluster that no plan is for
 */
export function addConflicts(all: readonly Planned[], others: readonly Claimant[] = []): void {
  const holders = holdersOf(all);
  const claims = [...others, ...all].flatMap(({ owner, claims }) => claims.map((id) => ({ id, owner })));
  const claimants = Map.groupBy(claims, ({ id }) => id);
  for (const planned of all) {
    const { plan, conflicts, resources, owner } = planned;
    const fails: string[] = [];
    for (const { urn, id = "", holder, message } of conflicts) {
      const resource = resources.find(({ change }) => change.urn === urn);
      if (resource !== undefined) resource.refused = true;
      const frees = (other: Holder) => other.owner === holder && FREES.includes(other.word as Gated);
      const freed = holders.get(id)?.find(frees)?.word;
      if (freed === undefined) fails.push(message);
      else {
        plan.notes.push(`waits until these changes are made there: ${message}`);
        if (resource === undefined) continue;
        if (freed !== "delete") resource.shown.operation = "hand-over";
        else
          Object.assign(resource.shown, { operation: "create", fields: createdFields(resource.change.inputs ?? {}) });
      }
    }
    const known = new Set(conflicts.map(({ id }) => id));
    const rivals = rivalries(planned, known, holders);
    fails.push(...rivals.map(({ id, rival }) => `Conflict: ${id} is also ${rival}'s; only one of them can have it`));
    const told = new Set([...known, ...rivals.map(({ id }) => id)]);
    for (const id of planned.claims.filter((id) => !told.has(id) && !planned.held.has(id))) {
      const other = claimants.get(id)?.find((claimant) => claimant.owner !== owner);
      if (other !== undefined) fails.push(`Conflict: ${id} is also claimed by ${other.owner}`);
    }
    if (fails.length > 0) plan.action = "failed";
    plan.errors.push(...fails);
  }
}

interface Holder {
  owner: string;
  word: ResourcePlan["operation"] | "same";
}

/** Who does what to a Kubernetes object, by {@link objectId}. */
function holdersOf(all: readonly Planned[]): ReadonlyMap<string, Holder[]> {
  const holders = new Map<string, Holder[]>();
  const add = (id: string | undefined, holder: Holder) => {
    if (id !== undefined) holders.set(id, [...(holders.get(id) ?? []), holder]);
  };
  for (const { owner, resources, kept } of all) {
    for (const id of kept) add(id, { owner, word: "same" });
    for (const { change, shown } of resources) {
      const [id, before] = [touchedObject(change), touchedObject({ ...change, inputs: change.old?.inputs ?? {} })];
      add(id, { owner, word: shown.operation });
      if (before === id || change.old === undefined) continue;
      add(before, { owner, word: change.old.outputs.created === false ? "release" : "delete" });
    }
  }
  return holders;
}

/** What this object would take and another one also takes, or has. */
function rivalries(
  { resources, owner }: Planned,
  known: ReadonlySet<string | undefined>,
  holders: ReadonlyMap<string, Holder[]>,
): { id: string; rival: string }[] {
  const taken = resources.filter(({ shown }) => ["create", "adopt"].includes(shown.operation));
  return taken.flatMap(({ change }) => {
    const id = touchedObject(change);
    if (id === undefined || known.has(id)) return [];
    const rival = holders.get(id)?.find((other) => other.owner !== owner && !FREES.includes(other.word as Gated));
    return rival === undefined ? [] : [{ id, rival: rival.owner }];
  });
}

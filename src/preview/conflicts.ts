import type { Manifest } from "../../providers/kubernetes/client";
import type { StepAction } from "../../stacks/contract/plan";
import { type PlannedResource, touchedObject } from "../plan/effects";
import { createdFields } from "../plan/fields";
import type { Conflict } from "../plan/obstacles";
import type { ResourcePlan } from "../plan/resource-plan";
import type { ObjectPlan } from "./report";

/** The plan for one object, and its effects on other objects. */
export interface Planned {
  plan: ObjectPlan;
  /** The object as `OWNER_ANNOTATION` would name it. */
  owner: string;
  resources: readonly PlannedResource[];
  /** What stays as it is, by `objectId`. */
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

/** What takes an object from its owner, who may have made it. */
const FREES: readonly StepAction[] = ["delete", "release", "orphan"];

/**
 * Adds conflicts to the plans: with live objects, and between new objects. An update that only waits until another of
 * these updates releases something does not fail.
 *
 * @param others objects of the cluster that no plan is for
 */
export function addConflicts(all: readonly Planned[], others: readonly Claimant[]): void {
  const holders = holdersOf(all);
  const claims = [...others, ...all].flatMap(({ owner, claims }) => claims.map((id) => ({ id, owner })));
  const claimants = Map.groupBy(claims, ({ id }) => id);
  for (const planned of all) {
    const { plan, conflicts, resources, owner } = planned;
    const fails: string[] = [];
    for (const { urn, id = "", holder, message } of conflicts) {
      const resource = resources.find(({ change }) => change.urn === urn);
      if (resource !== undefined) resource.refused = true;
      const frees = (other: Holder) => other.owner === holder && FREES.includes(other.word as StepAction);
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

/** Who does what to a Kubernetes object, by `objectId`. */
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
    const rival = holders.get(id)?.find((other) => other.owner !== owner && !FREES.includes(other.word as StepAction));
    return rival === undefined ? [] : [{ id, rival: rival.owner }];
  });
}

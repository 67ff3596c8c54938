import pLimit from "p-limit";
import { failureOf } from "../../providers/errors";
import { ownersAllowed } from "../../providers/kubernetes/apply-effect";
import { isRecord } from "../../providers/kubernetes/field-path";
import { describeConflict, OWNER_ANNOTATION } from "../../providers/kubernetes/ownership";
import { MASKED } from "../../providers/literal";
import { sqlStateOf } from "../../providers/postgres/errors";
import { ROW_STUB } from "../../providers/postgres/row";
import type { RowInputs, RowOutputs } from "../../providers/postgres/row-inputs";
import { inspectRow } from "../../providers/postgres/row-inspection";
import { PROVIDER_PROPERTY } from "../../providers/resource-options";
import { objectId } from "../../stacks/contract/object";
import { appliedBefore, ownersOf, type PlannedResource } from "./effects";
import type { FieldChange } from "./resource-plan";

/** Something that an update needs and that has another owner. */
export interface Conflict {
  /** The URN of the resource. */
  urn: string;
  /** See {@link objectId}; absent for a row, which cannot be handed over. */
  id?: string;
  /** Who has it, as {@link OWNER_ANNOTATION} says. */
  holder?: string;
  /** With the reason that the update's failure would have. */
  message: string;
}

/** What is in the way of changes, and what could not be looked up, by the URNs of the resources. */
interface Obstacles {
  conflicts: Conflict[];
  /** Rows that a creation takes over, with the values that it overwrites. */
  overwritten: Map<string, FieldChange[]>;
  unknown: Map<string, unknown>;
}

/** Looks for what would make the changes of one stack fail. */
export type ConflictFinder = (resources: readonly PlannedResource[]) => Promise<Obstacles>;

/** Each has a connection of its own: to open one takes longer than to read. */
const DATABASE_READS_AT_ONCE = 4;

/** Finds conflicts with what plans saw, and in the database, which it only reads. A database that does not answer is asked once more, for all. */
export function conflictFinder(inspect = inspectRow): ConflictFinder {
  let unreachable: unknown;
  const limit = pLimit(DATABASE_READS_AT_ONCE);
  const findInDatabase: typeof inspectRow = (inputs, claimant) =>
    limit(async () => {
      if (unreachable !== undefined) throw unreachable;
      try {
        return await inspect(inputs, claimant).catch((error: unknown) => {
          // A process that was busy for as long has not looked at the answer either.
          if (failureOf(error).reason !== "ConnectionTimeout") throw error;
          return inspect(inputs, claimant);
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
        obstacles.unknown.set(resource.change.urn, error);
      }),
    );
    await Promise.all(finding);
    return obstacles;
  };
}

/** @throws Error when it cannot be told */
async function findObstacle(
  { change: { urn, operation, inputs, old, secretInputs }, inputs: given, live }: PlannedResource,
  findInDatabase: typeof inspectRow,
  { conflicts, overwritten }: Obstacles,
): Promise<void> {
  if (given !== undefined) {
    const { manifest, owner, adopt } = given;
    // An update waits for an object that is being deleted, also for one of another owner.
    if (live === undefined || live.metadata.deletionTimestamp !== undefined) return;
    const owners = ownersAllowed(live, ownersOf(owner, old), appliedBefore(old));
    const message = describeConflict(live, owner, owners, adopt !== false || operation !== "create");
    if (message === undefined) return;
    const holder = live.metadata.annotations?.[OWNER_ANNOTATION];
    conflicts.push({ urn, id: objectId(manifest), ...(holder && { holder }), message: `Conflict: ${message}` });
    return;
  }
  if (inputs?.[PROVIDER_PROPERTY] !== ROW_STUB) return;
  const row = inputs as unknown as RowInputs;
  const { incarnation, location } = (old?.outputs ?? {}) as unknown as RowOutputs;
  const made = operation === "update" && { made: { incarnation, location } };
  const { values } = (secretInputs?.() ?? row) as Pick<RowInputs, "values">;
  const found = await findInDatabase({ ...row, values }, { owners: ownersOf(row.owner, old), ...made });
  if (found.refusal !== undefined) {
    const { reason, message } = found.refusal;
    conflicts.push({ urn, message: `${reason}: ${message}` });
  } else if (found.live !== undefined) {
    const fields = Object.entries(found.live).map(([name, live]) => {
      const after = isRecord(row.values) ? row.values[name] : MASKED;
      return { path: `values.${name}`, before: after === MASKED ? MASKED : live, after };
    });
    overwritten.set(urn, fields);
  }
}

/** By URN, why changes of one stack would fail. @throws the error of what could not be looked up */
export async function refusalsOf(resources: readonly PlannedResource[]): Promise<ReadonlyMap<string, string>> {
  const { conflicts, unknown } = await conflictFinder()(resources);
  for (const error of unknown.values()) throw error;
  return new Map(conflicts.map(({ urn, message }) => [urn, message]));
}

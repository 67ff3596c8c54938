import type { LiveObject } from "../../providers/kubernetes/client";
import { isObjectOutputs } from "../../providers/kubernetes/object";
import { findCondition } from "../../stacks/contract/condition";
import { parseObject, statusOf } from "../../stacks/contract/kind";
import { objectId } from "../../stacks/contract/object";
import type { UpdateResult } from "../automation/engine";
import { backOffConditions, contestedConditions } from "./conditions";
import { loggerOf, type Outcome, ownedOf, type Turn, writeStatus } from "./context";
import type { Drift } from "./drift";
import { type Contest, describeContest } from "./field-conflict";

/** What is not as it was applied, or short, by what the caches show. @param waiting what ended, and is to count */
export function findWanting(turn: Turn, { edited, missing, unseen }: Drift, waiting: readonly string[] = []): string[] {
  const shortfall = unseen.length > 0 ? [] : shortfallOf(turn, waiting);
  return [...edited, ...missing, ...shortfall, ...(turn.memory.drifted ? ["what was compared"] : [])];
}

function shortfallOf(turn: Turn, waiting: readonly string[]): string[] {
  const { context, key, object } = turn;
  const { kind, observed } = context;
  if (kind.shortfall === undefined || statusOf(object).stack === undefined) return [];
  try {
    return kind.shortfall(parseObject(kind, object), asBegun(ownedOf(turn), waiting), observed(key));
  } catch {
    return []; // an update will say what is wrong with the object
  }
}

/** What ended, as if it had not, so that it is neither missed nor removed. */
export function asBegun(owned: LiveObject[], ended: readonly string[]): LiveObject[] {
  return owned.map((object) => (ended.includes(objectId(object)) ? { ...object, status: undefined } : object));
}

/** Whether a repair has to wait, because of a fight or because replacements end as well; says so. @returns for how long, in ms */
export async function backOff(turn: Turn, ended: readonly string[]): Promise<number> {
  const { context, object, memory } = turn;
  const now = performance.now();
  const { repairs, replacements } = memory;
  const endedMs = ended.length > 0 ? replacements.notBefore - now : 0;
  const waitMs = Math.max(repairs.notBefore - now, endedMs, 0);
  if (waitMs === 0) return 0;
  const conditions = endedMs > 0 ? backOffConditions(object.metadata.generation ?? 0, ended) : [];
  const [condition] = conditions;
  const known = findCondition(statusOf(object).conditions, "Reconciling")?.reason === condition?.reason;
  if (condition && !known) context.recorder.event(object, "Warning", condition.reason, condition.message);
  await writeStatus(turn, object, { conditions });
  return Math.ceil(waitMs);
}

/**
 * Counts a repair. In a fight it also looks at what was found, so that the fields and their other managers can be named.
 *
 * What is missing does not count where the program depends on what is alive: there, things come and go.
 */
export async function watchContest(turn: Turn, { edited, missing }: Drift): Promise<Contest | undefined> {
  const deleted = turn.context.kind.shortfall === undefined ? missing : [];
  if (edited.length + deleted.length === 0 || !turn.memory.repairs.count(performance.now())) return undefined;
  return { edited: await readOwned(turn, edited), deleted };
}

/** @param written the object with the status of the repair */
export async function reportContest(
  turn: Turn,
  written: LiveObject,
  contest: Contest,
  { resources }: UpdateResult,
): Promise<Outcome> {
  const applied = resources.flatMap(({ outputs }) => (isObjectOutputs(outputs) ? [outputs.manifest] : []));
  const description = describeContest(contest, applied);
  turn.context.recorder.event(written, "Warning", "Contested", description);
  loggerOf(turn).warn({ contest: description }, "somebody undoes every repair, slowing down");
  const generation = written.metadata.generation ?? 0;
  await writeStatus(turn, written, { conditions: contestedConditions(generation, description) });
  return { afterMs: Math.max(0, turn.memory.repairs.notBefore - performance.now()) };
}

async function readOwned({ context: { client, view } }: Turn, ids: readonly string[]): Promise<LiveObject[]> {
  const objects = await Promise.all(
    ids.map(async (id) => {
      const seen = view(id)?.object;
      if (seen === undefined) return undefined;
      const type = await client.resourceType(seen.apiVersion, seen.kind);
      return client.get(type, seen.metadata.name, seen.metadata.namespace);
    }),
  );
  return objects.filter((object) => object !== undefined);
}

import { readFile, stat } from "node:fs/promises";
import Type from "typebox";
import { historyOf } from "./file-backend";
import { type RecordedResource, stateOf } from "./stack-state";
import { isScaffolding, nameOf } from "./urn";

export const resourceChangeSchema = Type.Object({
  operation: Type.Enum(["create", "update", "replace", "delete"]),
  type: Type.String(),
  name: Type.String(),
});
export type ResourceChange = Type.Static<typeof resourceChangeSchema>;

/** For the newest updates only: each needs its checkpoint and the one before. */
const NAMED_UPDATES = 10;
/** A larger checkpoint takes too long to parse for a page. */
const MAX_BYTES = 1024 * 1024;
const HISTORY = /\.history\.json(\.gz)?$/;
const CHECKPOINT = /\.checkpoint\.json(\.gz)?$/;

/**
 * The changes of the newest updates in a file backend, newest first, by comparing the checkpoints that its history keeps;
 * `undefined` for an update whose checkpoints are gone or too large.
 *
 * @param directory the `.pulumi` of the backend
 * @param entries the updates, newest first
 */
export async function readUpdateChanges(
  directory: string,
  stack: string,
  entries: readonly { resourceChanges?: Record<string, number> }[],
): Promise<(ResourceChange[] | undefined)[]> {
  const updates = (await historyOf(directory, stack)).filter((files) => files.some((file) => HISTORY.test(file)));
  const checkpoints = await Promise.all(
    updates.slice(0, NAMED_UPDATES + 1).map((files) => {
      const file = files.find((file) => CHECKPOINT.test(file));
      return file === undefined ? undefined : readResources(file);
    }),
  );
  return checkpoints.slice(0, NAMED_UPDATES).map((after, index) => {
    const isFirst = index === updates.length - 1 && hasOnlyCreated(entries[index]);
    const before = isFirst ? [] : checkpoints[index + 1];
    return before !== undefined && after !== undefined ? changesBetween(before, after) : undefined;
  });
}

/** The oldest update of a restored stack has resources that it did not create. */
function hasOnlyCreated(entry: { resourceChanges?: Record<string, number> } | undefined): boolean {
  const operations = Object.keys(entry?.resourceChanges ?? {});
  return operations.length > 0 && operations.every((operation) => operation === "create");
}

async function readResources(file: string): Promise<readonly RecordedResource[] | undefined> {
  if ((await stat(file)).size > MAX_BYTES) return undefined;
  return stateOf(await readFile(file)).deployment.resources ?? [];
}

/** What led from one state to the next, in the order of the resources' names; without the stack and providers. */
export function changesBetween(
  before: readonly RecordedResource[],
  after: readonly RecordedResource[],
): ResourceChange[] {
  const [old, now] = [byUrn(before), byUrn(after)];
  const changes: ResourceChange[] = [];
  for (const [urn, resource] of now) {
    const previous = old.get(urn);
    if (previous === undefined) changes.push(changeOf("create", resource));
    else if (previous.id !== resource.id) changes.push(changeOf("replace", resource));
    else if (previous.modified !== resource.modified) changes.push(changeOf("update", resource));
  }
  for (const [urn, resource] of old) if (!now.has(urn)) changes.push(changeOf("delete", resource));
  return changes.sort((a, b) => a.name.localeCompare(b.name, "en"));
}

function byUrn(resources: readonly RecordedResource[]): Map<string, RecordedResource> {
  const counted = resources.filter((resource) => resource.delete !== true && !isScaffolding(resource.urn));
  return new Map(counted.map((resource) => [resource.urn, resource]));
}

function changeOf(operation: ResourceChange["operation"], { urn, type }: RecordedResource): ResourceChange {
  return { operation, type: type.split(":").at(-1) ?? type, name: nameOf(urn) };
}

/** `2 create, 1 update`: the counts of an update's history entry, without what stayed the same; empty for none. */
export function countsOf(resourceChanges: Readonly<Record<string, number>> = {}): string {
  return Object.entries(resourceChanges)
    .filter(([operation]) => operation !== "same")
    .map(([operation, count]) => `${count} ${operation}`)
    .join(", ");
}

/** `create Pod web/a` for each of the first changes, then how many more there are. */
export function listChanges(changes: readonly ResourceChange[], most: number): string[] {
  const lines = changes.slice(0, most).map(({ operation, type, name }) => `${operation} ${type} ${name}`);
  return changes.length > most ? [...lines, `${changes.length - most} more`] : lines;
}

/** `1.5 s`: how long an update took, by its history entry; `undefined` for one that has not ended. */
export function durationOf({ startTime, endTime }: { startTime: string; endTime?: string }): string | undefined {
  return endTime && `${((Date.parse(endTime) - Date.parse(startTime)) / 1000).toFixed(1)} s`;
}

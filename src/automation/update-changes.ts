import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { isObjectComponent } from "../../stacks/contract/shared-stack";
import { nameOf } from "./event-log";
import { historyFolder } from "./file-backend";
import { isScaffolding } from "./shared-stack";

/** What an update did to one resource. */
export interface ResourceChange {
  operation: "create" | "update" | "replace" | "delete";
  type: string;
  name: string;
}

/** A resource in a checkpoint, as far as it shows what an update did. */
interface CheckpointResource {
  urn: string;
  type: string;
  id?: string;
  /** When the engine last changed it, ISO 8601. */
  modified?: string;
  /** It was replaced, and its deletion is pending. */
  delete?: boolean;
}

/** For the newest updates only: each needs its checkpoint and the one before. */
const NAMED_UPDATES = 10;
/** A larger checkpoint, of a shared stack, takes too long to parse for a page. */
const MAX_BYTES = 1024 * 1024;

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
  const folder = historyFolder(directory, stack);
  const files = await readdir(folder).catch(() => []);
  const times = [...new Set(files.flatMap((file) => /-(\d+)\.history\.json/.exec(file)?.[1] ?? []))].sort().reverse();
  const checkpoints = await Promise.all(
    times.slice(0, NAMED_UPDATES + 1).map((time) => {
      const file = files.find((name) => name.includes(`-${time}.checkpoint.json`));
      return file === undefined ? undefined : readResources(join(folder, file));
    }),
  );
  return checkpoints.slice(0, NAMED_UPDATES).map((after, index) => {
    const isFirst = index === times.length - 1 && hasOnlyCreated(entries[index]);
    const before = isFirst ? [] : checkpoints[index + 1];
    return before !== undefined && after !== undefined ? changesBetween(before, after) : undefined;
  });
}

/** The oldest update of a restored stack has resources that it did not create. */
function hasOnlyCreated(entry: { resourceChanges?: Record<string, number> } | undefined): boolean {
  const operations = Object.keys(entry?.resourceChanges ?? {});
  return operations.length > 0 && operations.every((operation) => operation === "create");
}

async function readResources(file: string): Promise<CheckpointResource[] | undefined> {
  if ((await stat(file)).size > MAX_BYTES) return undefined;
  const bytes = await readFile(file);
  const text = file.endsWith(".gz") ? await promisify(gunzip)(bytes) : bytes;
  const { checkpoint } = JSON.parse(text.toString("utf8")) as {
    checkpoint?: { latest?: { resources?: CheckpointResource[] | null } | null };
  };
  return checkpoint?.latest?.resources ?? [];
}

/** What led from one state to the next, in the order of the resources' names; without the stack, providers and components. */
export function changesBetween(
  before: readonly CheckpointResource[],
  after: readonly CheckpointResource[],
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

function byUrn(resources: readonly CheckpointResource[]): Map<string, CheckpointResource> {
  const counted = resources.filter(({ urn, type, ...rest }) => {
    return rest.delete !== true && !isScaffolding(urn) && !isObjectComponent(type);
  });
  return new Map(counted.map((resource) => [resource.urn, resource]));
}

function changeOf(operation: ResourceChange["operation"], { urn, type }: CheckpointResource): ResourceChange {
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
export function describeChanges(changes: readonly ResourceChange[], most: number): string[] {
  const lines = changes.slice(0, most).map(({ operation, type, name }) => `${operation} ${type} ${name}`);
  return changes.length > most ? [...lines, `${changes.length - most} more`] : lines;
}

/** `1.5 s`: how long an update took, by its history entry; `undefined` for one that has not ended. */
export function durationOf({ startTime, endTime }: { startTime: string; endTime?: string }): string | undefined {
  return endTime && `${((Date.parse(endTime) - Date.parse(startTime)) / 1000).toFixed(1)} s`;
}

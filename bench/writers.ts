import { randomUUID } from "node:crypto";
import pLimit from "p-limit";
import type { KubernetesClient, Manifest } from "../providers/kubernetes/client";
import type { Program } from "../src/automation/program";
import { type AnyKind, ownerDescription, parseServed } from "../stacks/contract/kind";
import { objectKey } from "../stacks/contract/object";
import { runProgram } from "../stacks/contract/run-program";
import { postgresWriter } from "../stacks/kinds/postgres-writer/kind";

/** The row of one PostgresWriter. */
export interface Writer {
  namespace: string;
  name: string;
}

export const WRITER = { apiVersion: "demo.yash.com/v1", kind: "PostgresWriter" };
export const WRITER_RESOURCE = "postgreswriters";
const AGE = 23;
/** What stands in their rows after they have been changed. */
export const CHANGED_AGE = 24;
/** Requests that are on their way at the same time. */
const AT_ONCE = 32;

/** So many, spread evenly over so many namespaces: `<prefix>` when it is one, else `<prefix>-0` and so on. */
export function writersOf(prefix: string, count: number, namespaces = 1): Writer[] {
  return Array.from({ length: count }, (_, index) => ({
    namespace: namespaces === 1 ? prefix : `${prefix}-${index % namespaces}`,
    name: `writer-${index}`,
  }));
}

export function keyOf(metadata: { name: string; namespace?: string }): string {
  return objectKey(metadata);
}

export function writerManifest(metadata: Writer, age = AGE): Manifest {
  return { ...WRITER, metadata, spec: { table: "students", name: "alex", age, country: "canada" } };
}

/** What an update of all these writers registers, without anything of the operator's. */
export function writersProgram(writers: readonly Writer[], age = AGE): Program {
  const programs = writers.map((writer) => programOf(postgresWriter, writerManifest(writer, age)));
  return () => {
    for (const program of programs) void program();
  };
}

/** What an update of an object registers, without anything of the operator's. */
export function programOf(kind: AnyKind, manifest: Manifest): Program {
  const { name = "" } = manifest.metadata;
  const metadata = { ...manifest.metadata, name, uid: randomUUID(), resourceVersion: "0", generation: 1 };
  const object = parseServed(kind, { ...manifest, metadata });
  const owner = { uid: metadata.uid, description: ownerDescription(kind, objectKey(metadata)) };
  return async () => runProgram(kind, await object, { owner, owned: [], recorded: new Set(), watched: [] });
}

/** Those that do not exist yet. */
export async function createNamespaces(client: KubernetesClient, writers: readonly Writer[]): Promise<void> {
  for (const name of new Set(writers.map(({ namespace }) => namespace))) {
    await client.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name } }, { fieldManager: "bench" });
  }
}

/** Does something to each, some of them at the same time. */
export async function forEachAtOnce<T>(
  items: readonly T[],
  work: (item: T) => Promise<unknown>,
  atOnce = AT_ONCE,
): Promise<void> {
  const limiter = pLimit(atOnce);
  await Promise.all(items.map((item) => limiter(() => work(item))));
}

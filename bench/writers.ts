import { randomUUID } from "node:crypto";
import pLimit from "p-limit";
import type { KubernetesClient, Manifest, ResourceType } from "../providers/kubernetes/client";
import type { Program } from "../src/automation/language-server";
import { ownerDescription, parseObject } from "../stacks/contract/kind";
import { objectKey } from "../stacks/contract/object";
import { postgresWriter } from "../stacks/postgres-writer/kind";

/** The row of one PostgresWriter. */
export interface Writer {
  namespace: string;
  name: string;
}

const AGE = 23;
/** What stands in their rows after they have been changed. */
export const CHANGED_AGE = 24;
/** Requests that are on their way at the same time. */
const AT_ONCE = 32;

/** So many, shared evenly by so many namespaces: `<prefix>` when it is one, else `<prefix>-0` and so on. */
export function writersOf(prefix: string, count: number, namespaces = 1): Writer[] {
  return Array.from({ length: count }, (_, index) => ({
    namespace: namespaces === 1 ? prefix : `${prefix}-${index % namespaces}`,
    name: `writer-${index}`,
  }));
}

export function keyOf(writer: Writer): string {
  return objectKey(writer);
}

export function writerManifest({ namespace, name }: Writer, age = AGE): Manifest {
  const spec = { table: "students", name: "alex", age, country: "canada" };
  return { apiVersion: "demo.yash.com/v1", kind: "PostgresWriter", metadata: { namespace, name }, spec };
}

/** What an update of all these writers registers, without anything of the operator's. */
export function writersProgram(writers: readonly Writer[], age = AGE): Program {
  const objects = writers.map((writer) => {
    const manifest = writerManifest(writer, age);
    const metadata = {
      ...manifest.metadata,
      name: writer.name,
      uid: randomUUID(),
      resourceVersion: "0",
      generation: 1,
    };
    return parseObject(postgresWriter, { ...manifest, metadata });
  });
  return () => {
    for (const object of objects) {
      const description = ownerDescription(postgresWriter, objectKey(object.metadata));
      const owner = { uid: object.metadata.uid, description };
      void postgresWriter.program(object, { owner, owned: [], recorded: new Set(), watched: [] });
    }
  };
}

export function writerType(client: KubernetesClient): Promise<ResourceType> {
  return client.resourceType("demo.yash.com/v1", "PostgresWriter");
}

export async function createNamespaces(client: KubernetesClient, writers: readonly Writer[]): Promise<void> {
  for (const name of new Set(writers.map(({ namespace }) => namespace))) {
    await client.create({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
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

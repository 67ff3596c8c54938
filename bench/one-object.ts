import { randomUUID } from "node:crypto";
import { execa } from "execa";
import type { LiveObject, ResourceType } from "../providers/kubernetes/client";
import type { StackEngine } from "../src/automation/engine";
import { findCondition } from "../stacks/contract/condition";
import { parseObject, statusOf } from "../stacks/contract/kind";
import { stackName } from "../stacks/contract/object";
import { postgresWriter } from "../stacks/postgres-writer/kind";
import type { BenchCluster } from "./cluster";
import { watchFor } from "./watch";

/** Milliseconds of one round each way. */
export interface Round {
  /** From the start of `kubectl create` until the object is Ready and its row is there. */
  operator: number;
  /** One CLI update of the same program, on a stack of its own. */
  cli: number;
}

/**
 * One object, both ways, in turns: what a user waits for, against the update that is the least it can take.
 *
 * @param progress called before each round
 */
export async function measureOneObject(
  cluster: BenchCluster,
  engine: StackEngine,
  rounds: number,
  progress: (round: number) => void,
): Promise<Round[]> {
  const type = await cluster.client.resourceType("demo.yash.com/v1", "PostgresWriter");
  const results: Round[] = [];
  for (let round = 0; round < rounds; round++) {
    progress(round);
    results.push({
      operator: await throughOperator(cluster, type, `one-${round}`),
      cli: await throughCli(engine, `bare-${round}`),
    });
  }
  return results;
}

export function writerManifest(name: string): LiveObject {
  return {
    apiVersion: "demo.yash.com/v1",
    kind: "PostgresWriter",
    metadata: { name, namespace: "default", uid: randomUUID(), resourceVersion: "0", generation: 1 },
    spec: { table: "students", name: "alex", age: 23, country: "canada" },
  };
}

async function throughOperator(cluster: BenchCluster, type: ResourceType, name: string): Promise<number> {
  const { apiVersion, kind, spec } = writerManifest(name);
  const manifest = JSON.stringify({ apiVersion, kind, metadata: { name, namespace: "default" }, spec });
  const { seen } = await watchFor(
    cluster.client,
    type,
    "default",
    (object) => object.metadata.name === name && isReady(object),
  );
  const started = performance.now();
  await execa("kubectl", ["create", "-f", "-"], { input: manifest, env: cluster.env });
  await seen;
  const elapsed = performance.now() - started;
  if ((await cluster.countRows(`default/${name}`)) !== 1) throw new Error(`${name} is Ready, but its row is not there`);
  return elapsed;
}

async function throughCli(engine: StackEngine, name: string): Promise<number> {
  const object = parseObject(postgresWriter, writerManifest(name));
  const owner = { uid: object.metadata.uid, description: "bench" };
  const stack = stackName(postgresWriter, `default/${name}`);
  const started = performance.now();
  const result = await engine.up(stack, () =>
    postgresWriter.program(object, { owner, owned: [], recorded: new Set(), observed: [] }),
  );
  const elapsed = performance.now() - started;
  if (result.outcome !== "succeeded") throw new Error(`the bare update failed: ${JSON.stringify(result.failures)}`);
  await engine.destroy(stack);
  return elapsed;
}

export function isReady(object: LiveObject): boolean {
  return findCondition(statusOf(object).conditions, "Ready")?.status === "True";
}

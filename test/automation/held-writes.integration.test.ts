import { randomUUID } from "node:crypto";
import { secret } from "@pulumi/pulumi/output";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { RetryableError } from "../../providers/errors";
import { KubernetesClient } from "../../providers/kubernetes/client";
import { lookUp } from "../../providers/kubernetes/connection";
import { KubernetesObject, OBJECT_STUB, provider as objects } from "../../providers/kubernetes/object";
import { foundNothing } from "../../providers/observation";
import { ROW_STUB, Row, provider as rows } from "../../providers/postgres/row";
import type { UpOptions, UpResult } from "../../src/automation/engine";
import { planUpdate } from "../../src/plan/plan";
import { podSet } from "../../stacks/kinds/podset/kind";
import { acme } from "../objects";
import { TestCluster } from "../providers/kubernetes/test-cluster";
import { useDatabase } from "../providers/postgres/database";
import { TestEngine } from "./test-engine";

const database = useDatabase();
const cluster = TestCluster.use();
let engine: TestEngine;
let table: string;
let stack: string;

beforeAll(async () => {
  engine = await TestEngine.open(undefined, {}, [
    [ROW_STUB, rows],
    [OBJECT_STUB, objects],
  ]);
  table = await database.createStudents();
});
afterAll(() => engine.close());
afterEach(() => void vi.restoreAllMocks());

type Program = () => void | Promise<void>;

/** A program of an object and a row, which are named after the stack. */
const both =
  (a: string, age: number): Program =>
  () => {
    const object = new KubernetesObject("object", { manifest: cluster.configMap(stack, { a }), owner: acme });
    new Row("row", { table, key: { id: stack }, values: { age }, owner: acme }, { dependsOn: object });
  };

function newStack(): void {
  stack = `s${randomUUID().slice(0, 8)}`;
}

/** What holds an update to what it is to do by now. */
async function approve(program: Program, options: UpOptions = {}): Promise<UpOptions> {
  const { plan, observed, failures } = await engine.engine.preview(stack, program, { ...options, plans: true });
  expect(failures).toEqual([]);
  return { ...options, plan, observed };
}

const up = (program: Program, options?: UpOptions) => engine.engine.up(stack, program, options);
const reasons = ({ failures }: UpResult) => failures.map(({ reason, resource }) => [resource, reason]);
/** Why an update fails that is held to what was observed just before. */
const failuresOnceApproved = async (program: Program, options?: UpOptions) => {
  return reasons(await up(program, await approve(program, options)));
};

/** A new stack with what a program gives. */
async function made(program: (name: string) => Program): Promise<void> {
  newStack();
  expect((await up(program(stack))).failures).toEqual([]);
}

const live = async () => [
  (await cluster.find(stack))?.data,
  await database.query(`SELECT age FROM ${table} WHERE id = $1`, [stack]),
];

describe("an update that is held to what was observed", () => {
  it("makes, changes and deletes what was planned", async () => {
    newStack();
    expect(await failuresOnceApproved(both("1", 1))).toEqual([]);
    expect(await live()).toEqual([{ a: "1" }, [{ age: 1 }]]);
    expect(await failuresOnceApproved(both("2", 2))).toEqual([]);
    expect(await live()).toEqual([{ a: "2" }, [{ age: 2 }]]);
    const { plan, observed } = await engine.engine.previewDestroy(stack, { plans: true });
    expect((await engine.engine.destroy(stack, { plan, observed })).failures).toEqual([]);
    expect(await live()).toEqual([undefined, []]);
  });

  it("observes what it would write, and nothing else", async () => {
    await made(() => both("1", 1));
    const { observed } = await approve(both("1", 2));
    expect([...(observed?.keys() ?? [])].map((urn) => urn.split("::").at(-1))).toEqual(["row"]);
  });

  it("is planned by reading each object once, for the refresh, the observation and what becomes of it", async () => {
    await made(() => both("1", 1));
    const find = vi.spyOn(KubernetesClient.prototype, "find");
    const nothing = async () => [];
    const plan = await planUpdate({
      kind: podSet,
      object: { metadata: { name: stack } },
      view: {
        look: (manifest, snapshot) => lookUp(cluster.client, manifest, snapshot),
        ...{ cluster: async () => undefined, owned: nothing, watched: nothing, marked: nothing, deletedWith: nothing },
      },
      engine: {
        preview: (_, program, options) => engine.engine.preview(stack, program, options),
        previewDestroy: () => Promise.reject(new Error("not a destroy")),
      },
      program: both("2", 1),
      ...{ refresh: true, binds: true, signal: undefined },
    });
    expect(plan.resources.map(({ shown }) => `${shown.operation} ${shown.name}`)).toEqual(["update object"]);
    expect([...(plan.observed?.keys() ?? [])]).toHaveLength(1);
    expect(find).toHaveBeenCalledOnce();
  });

  it("overwrites no field of an object that has changed since", async () => {
    await made(() => both("1", 1));
    const held = await approve(both("2", 1));
    await cluster.edit(stack, { data: { a: "other" } });
    const { failures } = await up(both("2", 1), held);
    const outdated = { resource: "object", reason: "PlanOutdated", errorClass: "retryable" };
    expect(failures).toMatchObject([{ ...outdated, message: expect.stringMatching(/data\.a/) }]);
    expect(await live()).toEqual([{ a: "other" }, [{ age: 1 }]]);
  });

  it("overwrites no column of a row that has changed since", async () => {
    await made(() => both("1", 1));
    const held = await approve(both("1", 2));
    await database.query(`UPDATE ${table} SET age = 7 WHERE id = $1`, [stack]);
    expect(reasons(await up(both("1", 2), held))).toEqual([["row", "PlanOutdated"]]);
    expect(await live()).toEqual([{ a: "1" }, [{ age: 7 }]]);
  });

  it("deletes nothing that has changed since", async () => {
    await made(() => both("1", 1));
    const { plan, observed } = await engine.engine.previewDestroy(stack, { plans: true });
    await database.query(`UPDATE ${table} SET age = 7 WHERE id = $1`, [stack]);
    expect(reasons(await engine.engine.destroy(stack, { plan, observed }))).toEqual([["row", "PlanOutdated"]]);
    expect((await live())[1]).toEqual([{ age: 7 }]);
  });

  it("finds nothing in the place of what is gone", async () => {
    await made(() => both("1", 1));
    const found = async () => {
      const { changes, observed = new Map() } = await engine.engine.previewDestroy(stack, { plans: true });
      return Object.fromEntries(changes.map(({ urn, name }) => [name, foundNothing(observed, urn)]));
    };
    expect(await found()).toEqual({ object: false, row: false });
    await database.query(`DELETE FROM ${table} WHERE id = $1`, [stack]);
    expect(await found()).toEqual({ object: false, row: true });
    await cluster.client.delete({ apiVersion: "v1", kind: "ConfigMap" }, stack, cluster.namespace);
    expect(await found()).toEqual({ object: true, row: true });
  });

  it("releases what is as it was", async () => {
    await made(() => both("1", 1));
    const { plan, observed } = await engine.engine.previewDestroy(stack, { plans: true });
    expect(reasons(await engine.engine.destroy(stack, { plan, observed, release: true }))).toEqual([]);
    expect(await live()).toEqual([{ a: "1" }, [{ age: 1 }]]);
  });

  it("corrects the drift that a refresh has found, and no other", async () => {
    await made(() => both("1", 1));
    await cluster.edit(stack, { data: { a: "drifted" } });
    const held = await approve(both("1", 1), { refresh: true });
    await cluster.edit(stack, { data: { a: "again" } });
    expect(reasons(await up(both("1", 1), held))).toEqual([["object", "PlanOutdated"]]);
    expect(await failuresOnceApproved(both("1", 1), { refresh: true })).toEqual([]);
    expect((await live())[0]).toEqual({ a: "1" });
  });

  it("replaces what is as it was, the old one first, or after the new one", async () => {
    const replaced =
      (a: string, id: string): Program =>
      () => {
        const manifest = cluster.configMap(stack, { a });
        new KubernetesObject("object", { manifest, owner: acme }, { replaceOnChanges: ["data"] });
        new Row("row", { table, key: { id: `${stack}${id}` }, values: { age: 1 }, owner: acme });
      };
    await made(() => replaced("1", ""));
    const uid = (await cluster.find(stack))?.metadata.uid;
    const held = await approve(replaced("2", "-new"));
    await cluster.edit(stack, { data: { a: "other" } });
    expect(reasons(await up(replaced("2", "-new"), held))).toContainEqual(["object", "PlanOutdated"]);
    expect((await cluster.find(stack))?.metadata.uid).toBe(uid);
    expect(await failuresOnceApproved(replaced("2", "-new"))).toEqual([]);
    const found = await cluster.find(stack);
    expect([found?.data, found?.metadata.uid === uid]).toEqual([{ a: "2" }, false]);
    const rows = await database.query(`SELECT id FROM ${table} WHERE id LIKE $1`, [`${stack}%`]);
    expect(rows).toEqual([{ id: `${stack}-new` }]);
  });

  it("moves what a resource of another name had", async () => {
    const named =
      (name: string, age: number): Program =>
      () => {
        new Row(name, { table, key: { id: stack }, values: { age }, owner: acme });
      };
    await made(() => named("old", 1));
    const held = await approve(named("new", 2));
    await database.query(`UPDATE ${table} SET age = 7 WHERE id = $1`, [stack]);
    expect(reasons(await up(named("new", 2), held))).toContainEqual(["new", "PlanOutdated"]);
    expect(await failuresOnceApproved(named("new", 2))).toEqual([]);
    expect((await live())[1]).toEqual([{ age: 2 }]);
  });

  it("finds what has secrets, also where it deletes it", async () => {
    const program =
      (value: string, keeps = true): Program =>
      () => {
        if (keeps) new Row("row", { table, key: { id: stack }, values: { name: secret(value) as never }, owner: acme });
        new KubernetesObject("object", { manifest: secret(cluster.configMap(stack, { value })) as never, owner: acme });
      };
    await made(() => program("hush"));
    const held = await approve(program("hushed", false));
    expect(JSON.stringify([...(held.observed ?? [])])).not.toContain("hush");
    await database.query(`UPDATE ${table} SET name = 'other' WHERE id = $1`, [stack]);
    const done = await up(program("hushed", false), held);
    expect(reasons(done)).toContainEqual(["row", "PlanOutdated"]);
    expect(JSON.stringify(done.failures)).not.toContain("hush");
  });

  it("goes on after a crash that nothing was saved of", async () => {
    newStack();
    const held = await approve(both("1", 1));
    const { apply } = KubernetesClient.prototype;
    async function applyAndCrash(this: KubernetesClient, ...given: Parameters<typeof apply>) {
      const applied = await apply.apply(this, given);
      process.kill(-(await engine.lastPid()), "SIGKILL");
      return applied;
    }
    vi.spyOn(KubernetesClient.prototype, "apply").mockImplementationOnce(applyAndCrash);
    expect(reasons(await up(both("1", 1), held))).toEqual([[undefined, "Killed"]]);
    expect((await live())[0]).toEqual({ a: "1" });
    expect(await approve(both("1", 1))).toMatchObject({ observed: held.observed });
    expect(reasons(await up(both("1", 1), held))).toEqual([]);
    expect(await live()).toEqual([{ a: "1" }, [{ age: 1 }]]);
  });

  it("needs no other plan for the steps that remain after a failure that passes", async () => {
    newStack();
    const held = await approve(both("1", 1));
    const failure = new RetryableError("Unreachable", "no network");
    vi.spyOn(KubernetesClient.prototype, "apply").mockRejectedValueOnce(failure);
    expect(reasons(await up(both("1", 1), held))).toEqual([["object", "Unreachable"]]);
    const other = await database.connect();
    await other.query(`BEGIN; LOCK ${table}`);
    expect(reasons(await up(both("1", 1), held))).toEqual([["row", "LockTimeout"]]);
    await other.query("COMMIT");
    await other.end();
    await expect.poll(async () => reasons(await up(both("1", 1), held))).toEqual([]);
    expect(await live()).toEqual([{ a: "1" }, [{ age: 1 }]]);
  });
});

describe("a value that is known only in the update", () => {
  const second = () => `${stack}-second`;
  /** The second object has the UID of the first one, which is replaced with another value. */
  const program =
    (a: string): Program =>
    () => {
      const options = { replaceOnChanges: ["data"] };
      const first = new KubernetesObject("first", { manifest: cluster.configMap(stack, { a }), owner: acme }, options);
      const data = first.uid.apply((uid) => ({ uid })) as never;
      new KubernetesObject("second", { manifest: { ...cluster.configMap(second()), data }, owner: acme });
    };
  const options = { sdkRuntime: true };

  it("is written over what was observed, and over nothing else", async () => {
    newStack();
    expect(await failuresOnceApproved(program("1"), options)).toEqual([]);
    const held = await approve(program("2"), options);
    await cluster.edit(second(), { data: { uid: "other" } });
    expect(reasons(await up(program("2"), held))).toContainEqual(["second", "PlanOutdated"]);
    expect((await cluster.find(second()))?.data).toEqual({ uid: "other" });
    expect(await failuresOnceApproved(program("2"), options)).toEqual([]);
    expect((await cluster.find(second()))?.data).toEqual({ uid: (await cluster.find(stack))?.metadata.uid });
  });
});

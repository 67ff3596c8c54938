import { beforeAll, describe, expect, it } from "vitest";
import { DynamicResource } from "../../../providers/dynamic";
import { KubernetesObject } from "../../../providers/kubernetes/object";
import { Row } from "../../../providers/postgres/row";
import type { Program } from "../../../src/automation/program";
import { controlPlane } from "../../control-plane";
import { acme } from "../../objects";
import { CONFIG_MAP, TestCluster } from "../kubernetes/test-cluster";
import { rowIn, TestDatabase } from "../postgres/database";
import { type EnginePair, openEnginePair } from "./script-engine";

const database = new TestDatabase(controlPlane().env);
let cluster: TestCluster;
let engines: EnginePair;
let table: string;

beforeAll(async () => {
  cluster = await TestCluster.open(controlPlane());
  await database.open();
  table = await database.createStudents();
  const { PULUMI_BACKEND_URL: _, PULUMI_CONFIG_PASSPHRASE_FILE: __, ...environment } = controlPlane().env;
  engines = await openEnginePair({ ...environment, PSQL_DBNAME: database.name });
  return async () => {
    await engines.close();
    await cluster.close();
    await database.close();
  };
});

/** A resource of each provider, and how to look at what it manages. */
interface Subject {
  declare(value: string): Program;
  value(): Promise<unknown>;
  remove(): Promise<unknown>;
}

const row: Subject = {
  declare: (name) => () => void new Row("row", rowIn(table, { values: { name, age: 23, country: "canada" } })),
  value: async () => (await database.query<{ name: string }>(`SELECT name FROM ${table}`))[0]?.name,
  remove: () => database.query(`DELETE FROM ${table}`),
};
const object: Subject = {
  declare: (value) => () =>
    void new KubernetesObject("object", { owner: acme, manifest: cluster.configMap("shared", { value }) }),
  value: async () => ((await cluster.find("shared"))?.data as { value?: string } | undefined)?.value,
  remove: () => cluster.client.delete(CONFIG_MAP, "shared", cluster.namespace),
};

class Foreign extends DynamicResource {
  constructor() {
    super({ module: "foreign", name: "Thing", stub: "exports.handler = () => process.exit(1);" }, "thing", {});
  }
}

/** Runs updates, and tells how often the SDK's script was started for them. */
async function startsDuring(work: () => Promise<void>): Promise<number> {
  const before = await engines.scriptStarts();
  await work();
  return (await engines.scriptStarts()) - before;
}

describe.each([
  ["a Row", row],
  ["a KubernetesObject", object],
])("the state of %s", (name, subject) => {
  const stack = name.replace(/\W/g, "-");

  it("that the host wrote is continued by the SDK's script", async () => {
    const { hosted, scripted } = engines;
    const starts = await startsDuring(async () => {
      expect(await hosted.up(stack, subject.declare("1"))).toMatchObject({
        summary: { result: "succeeded", resourceChanges: { create: 1 } },
      });
    });
    expect(starts).toBe(0);
    const scriptStarts = await startsDuring(async () => {
      expect(await scripted.up(stack, subject.declare("1"))).toEqual({
        summary: { result: "succeeded", resourceChanges: {} },
      });
      expect(await scripted.up(stack, subject.declare("2"))).toMatchObject({
        summary: { resourceChanges: { update: 1 } },
      });
    });
    expect(scriptStarts).toBe(2);
    expect(await subject.value()).toBe("2");
  });

  it("that the script wrote is continued by the host", async () => {
    const { summary } = await engines.hosted.up(stack, subject.declare("2"));
    expect(summary).toMatchObject({ result: "succeeded" });
    expect(summary.resourceChanges).toEqual({});
    expect(await engines.hosted.up(stack, subject.declare("3"))).toMatchObject({
      summary: { resourceChanges: { update: 1 } },
    });
    expect(await subject.value()).toBe("3");
  });

  it("is refreshed by both alike", async () => {
    for (const engine of [engines.scripted, engines.hosted]) {
      await subject.remove();
      expect(await engine.up(stack, subject.declare("3"), { refresh: true })).toMatchObject({
        summary: { result: "succeeded", resourceChanges: { create: 1 } },
      });
      expect(await subject.value()).toBe("3");
    }
  });

  it("is taken down by the script as well as by the host", async () => {
    expect(await engines.scripted.destroy(stack)).toMatchObject({
      summary: { result: "succeeded", resourceChanges: { delete: 1 } },
    });
    expect(await subject.value()).toBeUndefined();
    await engines.scripted.up(stack, subject.declare("4"));
    expect(await engines.hosted.destroy(stack)).toMatchObject({
      summary: { result: "succeeded", resourceChanges: { delete: 1 } },
    });
    expect(await subject.value()).toBeUndefined();
  });
});

describe("a resource that is renamed in a program", () => {
  const objects = (named: Record<string, string>) => () => {
    for (const [name, at] of Object.entries(named)) {
      new KubernetesObject(name, { owner: acme, manifest: cluster.configMap(at, { name }) });
    }
  };
  const rows = (named: Record<string, string>) => () => {
    for (const [name, id] of Object.entries(named)) {
      new Row(name, rowIn(table, { key: { id }, values: { name, country: "canada" } }));
    }
  };
  const liveObjects = async () => {
    const live = await Promise.all(["x", "y", "z"].map((at) => cluster.find(at)));
    return live.map((object) => object && [object.metadata.uid, (object.data as { name: string }).name]);
  };
  const liveRows = () => database.query(`SELECT id, name, age FROM ${table} ORDER BY id`);

  it.each(["hosted", "scripted"] as const)(
    "keeps its object, and exchanges it with another resource's: %s",
    async (by) => {
      const engine = engines[by];
      const up = (named: Record<string, string>) => engine.up(`${by}-objects`, objects(named));
      await up({ a: "x", b: "y" });
      const [[x] = [], [y] = []] = await liveObjects();
      expect(await up({ c: "y", b: "x" })).toMatchObject({
        summary: { result: "succeeded", resourceChanges: { create: 1, delete: 1 } },
      });
      expect(await liveObjects()).toEqual([[x, "b"], [y, "c"], undefined]);
      expect(await up({ c: "z", b: "y" })).toMatchObject({ summary: { result: "succeeded" } });
      expect(await liveObjects()).toEqual([undefined, [y, "b"], [expect.any(String), "c"]]);
      await engine.destroy(`${by}-objects`);
      expect(await liveObjects()).toEqual([undefined, undefined, undefined]);
    },
  );

  it("keeps its row, and exchanges it with another resource's", async () => {
    const { hosted } = engines;
    const up = (named: Record<string, string>) => hosted.up("rows", rows(named));
    await up({ a: "x", b: "y" });
    await database.query(`UPDATE ${table} SET age = ascii(id)`); // what others wrote is lost with the row
    const [x, y] = [120, 121];
    expect(await up({ c: "x", b: "y" })).toMatchObject({
      summary: { result: "succeeded", resourceChanges: { create: 1, delete: 1 } },
    });
    expect(await liveRows()).toEqual([
      { id: "x", name: "c", age: x },
      { id: "y", name: "b", age: y },
    ]);
    expect(await up({ c: "y", b: "x" })).toMatchObject({ summary: { result: "succeeded" } });
    expect(await liveRows()).toEqual([
      { id: "x", name: "b", age: x },
      { id: "y", name: "c", age: y },
    ]);
    await hosted.destroy("rows");
    expect(await liveRows()).toEqual([]);
  });

  it("leaves its object and its row where they are while it fails under its new name", async () => {
    const up = (name: string, label: string, age: number | string) =>
      engines.hosted.up("fails", () => {
        const manifest = cluster.configMap("x", { name });
        const metadata = { ...manifest.metadata, labels: { label } };
        new KubernetesObject(`object-${name}`, { owner: acme, manifest: { ...manifest, metadata } });
        new Row(`row-${name}`, rowIn(table, { key: { id: "x" }, values: { name, age } }));
      });
    await up("a", "fine", 1);
    const before = { objects: await liveObjects(), rows: await liveRows() };
    expect(await up("b", "not a label", "one")).toMatchObject({
      summary: { result: "failed" },
      failures: expect.arrayContaining([expect.objectContaining({ reason: "Moving" })]),
    });
    expect({ objects: await liveObjects(), rows: await liveRows() }).toEqual(before);
    expect(await up("b", "fine", 2)).toMatchObject({
      summary: { result: "succeeded", resourceChanges: { create: 2, delete: 2 } },
    });
    expect((await liveObjects())[0]).toEqual([before.objects[0]?.[0], "b"]);
    expect(await liveRows()).toEqual([{ id: "x", name: "b", age: 2 }]);
    await engines.hosted.destroy("fails");
  });
});

describe("the host", () => {
  it("runs no code that it finds in a state: a provider of another client is refused", async () => {
    expect(await engines.hosted.up("foreign", () => void new Foreign())).toMatchObject({
      summary: { result: "failed" },
      failures: [{ resource: "thing", message: expect.stringContaining("not Kindstack's") }],
    });
  });
});

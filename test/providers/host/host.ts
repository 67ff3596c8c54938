import { beforeAll, describe, expect, it } from "vitest";
import { KubernetesObject } from "../../../providers/kubernetes/object";
import { Row } from "../../../providers/postgres/row";
import type { Program } from "../../../src/automation/program";
import { controlPlane } from "../../control-plane";
import { acme } from "../../objects";
import { CONFIG_MAP, TestCluster } from "../kubernetes/test-cluster";
import { rowIn, TestDatabase } from "../postgres/database";
import { type EnginePair, openEnginePair } from "./script-engine";

/** The host, the SDK's script, and what both work on. */
export interface Hosts {
  engines: EnginePair;
  cluster: TestCluster;
  database: TestDatabase;
  table: string;
}

/** Opens them for a test file; they are there once its tests begin. */
export function useHosts(): Hosts {
  const hosts = { database: new TestDatabase(controlPlane().env) } as Hosts;
  const { database } = hosts;
  beforeAll(async () => {
    hosts.cluster = await TestCluster.open(controlPlane());
    await database.open();
    hosts.table = await database.createStudents();
    const { PULUMI_BACKEND_URL: _, PULUMI_CONFIG_PASSPHRASE_FILE: __, ...environment } = controlPlane().env;
    hosts.engines = await openEnginePair({ ...environment, PSQL_DBNAME: database.name });
    return async () => {
      await hosts.engines.close();
      await hosts.cluster.close();
      await database.close();
    };
  });
  return hosts;
}

/** A resource of each provider, and how to look at what it manages. */
interface Subject {
  declare(value: string): Program;
  value(): Promise<unknown>;
  remove(): Promise<unknown>;
}

const SUBJECTS = {
  Row: (hosts: Hosts): Subject => ({
    declare: (name) => () => void new Row("row", rowIn(hosts.table, { values: { name, age: 23, country: "canada" } })),
    value: async () => (await hosts.database.query<{ name: string }>(`SELECT name FROM ${hosts.table}`))[0]?.name,
    remove: () => hosts.database.query(`DELETE FROM ${hosts.table}`),
  }),
  KubernetesObject: (hosts: Hosts): Subject => ({
    declare: (value) => () =>
      void new KubernetesObject("object", { owner: acme, manifest: hosts.cluster.configMap("shared", { value }) }),
    value: async () => ((await hosts.cluster.find("shared"))?.data as { value?: string } | undefined)?.value,
    remove: () => hosts.cluster.client.delete(CONFIG_MAP, "shared", hosts.cluster.namespace),
  }),
};

/** How an update ends that has changed so many resources. */
export const succeeded = (resourceChanges: object) => ({ summary: { result: "succeeded", resourceChanges } });

/** Runs updates, and tells how often the SDK's script was started for them. */
async function startsDuring(engines: EnginePair, work: () => Promise<void>): Promise<number> {
  const before = await engines.scriptStarts();
  await work();
  return (await engines.scriptStarts()) - before;
}

/** What either of both wrote is the other's as well. */
export function describeState(hosts: Hosts, type: keyof typeof SUBJECTS): void {
  describe(`the state of a ${type}`, () => {
    const stack = type;
    const subject = SUBJECTS[type](hosts);

    it("that the host wrote is continued by the SDK's script", async () => {
      const { hosted, scripted } = hosts.engines;
      const starts = await startsDuring(hosts.engines, async () => {
        expect(await hosted.up(stack, subject.declare("1"))).toMatchObject(succeeded({ create: 1 }));
      });
      expect(starts).toBe(0);
      const scriptStarts = await startsDuring(hosts.engines, async () => {
        expect(await scripted.up(stack, subject.declare("1"))).toEqual(succeeded({}));
        expect(await scripted.up(stack, subject.declare("2"))).toEqual(succeeded({ update: 1 }));
      });
      expect(scriptStarts).toBe(2);
      expect(await subject.value()).toBe("2");
    });

    it("that the script wrote is continued by the host", async () => {
      const { hosted } = hosts.engines;
      const { summary } = await hosted.up(stack, subject.declare("2"));
      expect([summary.result, summary.resourceChanges]).toEqual(["succeeded", {}]);
      expect(await hosted.up(stack, subject.declare("3"))).toMatchObject(succeeded({ update: 1 }));
      expect(await subject.value()).toBe("3");
    });

    it("is refreshed by both alike", async () => {
      for (const engine of [hosts.engines.scripted, hosts.engines.hosted]) {
        await subject.remove();
        const refreshed = await engine.up(stack, subject.declare("3"), { refresh: true });
        expect(refreshed).toMatchObject(succeeded({ create: 1 }));
        expect(await subject.value()).toBe("3");
      }
    });

    it("is taken down by the script as well as by the host", async () => {
      const { hosted, scripted } = hosts.engines;
      expect(await scripted.destroy(stack)).toMatchObject(succeeded({ delete: 1 }));
      expect(await subject.value()).toBeUndefined();
      await scripted.up(stack, subject.declare("4"));
      expect(await hosted.destroy(stack)).toMatchObject(succeeded({ delete: 1 }));
      expect(await subject.value()).toBeUndefined();
    });
  });
}

/** The ConfigMaps `x`, `y` and `z`, with the name of the resource that has made each. */
export function renamable(hosts: Hosts) {
  return {
    /** @param named where the resources of these names are */
    objects: (named: Record<string, string>) => () => {
      for (const [name, at] of Object.entries(named)) {
        new KubernetesObject(name, { owner: acme, manifest: hosts.cluster.configMap(at, { name }) });
      }
    },
    liveObjects: async () => {
      const live = await Promise.all(["x", "y", "z"].map((at) => hosts.cluster.find(at)));
      return live.map((object) => object && [object.metadata.uid, (object.data as { name: string }).name]);
    },
  };
}

/** A renamed resource keeps its object, whichever of both does the update. */
export function describeRename(hosts: Hosts, by: "hosted" | "scripted"): void {
  const { objects, liveObjects } = renamable(hosts);
  it(`a renamed resource keeps its object, and exchanges it with another resource's: ${by}`, async () => {
    const engine = hosts.engines[by];
    const up = (named: Record<string, string>) => engine.up(`${by}-objects`, objects(named));
    await up({ a: "x", b: "y" });
    const [[x] = [], [y] = []] = await liveObjects();
    expect(await up({ c: "y", b: "x" })).toMatchObject(succeeded({ create: 1, delete: 1 }));
    expect(await liveObjects()).toEqual([[x, "b"], [y, "c"], undefined]);
    expect(await up({ c: "z", b: "y" })).toMatchObject({ summary: { result: "succeeded" } });
    expect(await liveObjects()).toEqual([undefined, [y, "b"], [expect.any(String), "c"]]);
    await engine.destroy(`${by}-objects`);
    expect(await liveObjects()).toEqual([undefined, undefined, undefined]);
  });
}

import { describe, expect, it } from "vitest";
import { DynamicResource } from "../../../providers/dynamic";
import { KubernetesObject } from "../../../providers/kubernetes/object";
import { Row } from "../../../providers/postgres/row";
import { acme } from "../../objects";
import { rowIn } from "../postgres/database";
import { describeRename, describeState, renamable, useHosts } from "./host";

const hosts = useHosts();

class Foreign extends DynamicResource {
  constructor() {
    super({ module: "foreign", name: "Thing", stub: "exports.handler = () => process.exit(1);" }, "thing", {});
  }
}

// `host.slow.test.ts` has the rest.
describeState(hosts, "Row");
describeRename(hosts, "hosted");

describe("a resource that is renamed in a program", () => {
  const { liveObjects } = renamable(hosts);
  const rows = (named: Record<string, string>) => () => {
    for (const [name, id] of Object.entries(named)) {
      new Row(name, rowIn(hosts.table, { key: { id }, values: { name, country: "canada" } }));
    }
  };
  const liveRows = () => hosts.database.query(`SELECT id, name, age FROM ${hosts.table} ORDER BY id`);

  it("keeps its row, and exchanges it with another resource's", async () => {
    const { hosted } = hosts.engines;
    const up = (named: Record<string, string>) => hosted.up("rows", rows(named));
    await up({ a: "x", b: "y" });
    await hosts.database.query(`UPDATE ${hosts.table} SET age = ascii(id)`); // what others wrote is lost with the row
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
      hosts.engines.hosted.up("fails", () => {
        const manifest = hosts.cluster.configMap("x", { name });
        const metadata = { ...manifest.metadata, labels: { label } };
        new KubernetesObject(`object-${name}`, { owner: acme, manifest: { ...manifest, metadata } });
        new Row(`row-${name}`, rowIn(hosts.table, { key: { id: "x" }, values: { name, age } }));
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
    await hosts.engines.hosted.destroy("fails");
  });
});

it("the host runs no code that it finds in a state: a provider of another client is refused", async () => {
  expect(await hosts.engines.hosted.up("foreign", () => void new Foreign())).toMatchObject({
    summary: { result: "failed" },
    failures: [{ resource: "thing", message: expect.stringContaining("not Kindstack's") }],
  });
});

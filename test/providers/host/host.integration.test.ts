import { describe, expect, it } from "vitest";
import { KubernetesObject } from "../../../providers/kubernetes/object";
import { Row } from "../../../providers/postgres/row";
import { acme } from "../../objects";
import { rowIn } from "../postgres/database";
import { describeRename, describeState, renamable, succeeded, useHosts } from "./host";

const hosts = useHosts();

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
    const rowOf = (id: string, name: string) => ({ id, name, age: id.charCodeAt(0) });
    expect(await up({ c: "x", b: "y" })).toMatchObject(succeeded({ create: 1, delete: 1 }));
    expect(await liveRows()).toEqual([rowOf("x", "c"), rowOf("y", "b")]);
    expect(await up({ c: "y", b: "x" })).toMatchObject({ summary: { result: "succeeded" } });
    expect(await liveRows()).toEqual([rowOf("x", "b"), rowOf("y", "c")]);
    await hosted.destroy("rows");
    expect(await liveRows()).toEqual([]);
  });

  it("leaves its object and its row where they are while it fails under its new name", async () => {
    const up = (name: string, label: string, age: number | string) =>
      hosts.engines.hosted.up("fails", () => {
        const manifest = hosts.cluster.configMap("x", { name }, { labels: { label } });
        new KubernetesObject(`object-${name}`, { owner: acme, manifest });
        new Row(`row-${name}`, rowIn(hosts.table, { key: { id: "x" }, values: { name, age } }));
      });
    await up("a", "fine", 1);
    const before = { objects: await liveObjects(), rows: await liveRows() };
    expect(await up("b", "not a label", "one")).toMatchObject({
      summary: { result: "failed" },
      failures: expect.arrayContaining([expect.objectContaining({ reason: "Moving" })]),
    });
    expect({ objects: await liveObjects(), rows: await liveRows() }).toEqual(before);
    expect(await up("b", "fine", 2)).toMatchObject(succeeded({ create: 2, delete: 2 }));
    expect((await liveObjects())[0]).toEqual([before.objects[0]?.[0], "b"]);
    expect(await liveRows()).toEqual([{ id: "x", name: "b", age: 2 }]);
    await hosts.engines.hosted.destroy("fails");
  });
});

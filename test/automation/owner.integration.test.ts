import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import type { StackEngine } from "../../src/automation/engine";
import type { BackendOwner } from "../../src/automation/owner-file";
import { useDirectory } from "../directories";
import { useDatabase } from "../providers/postgres/database";
import { stockBeside, TestEngine } from "./test-engine";
import { Thing } from "./things";

const database = useDatabase();
const folder = useDirectory();

const ownerOf = (id: string): BackendOwner => {
  return { id, cluster: `cluster-${id}`, clusterUid: `uid-${id}`, namespace: "n", since: new Date(0).toISOString() };
};

describe.each([
  ["in Go, on a folder", () => `file://${join(folder, "go")}`, "go"],
  ["in Go, on PostgreSQL", () => `${database.backendUrl()}&table=owned`, "go"],
  ["of the Automation API, on a folder", () => `file://${join(folder, "stock")}`, "stock"],
])("the engine %s", (_, url, which) => {
  let engine: StackEngine;
  let other: StackEngine;
  let cli: StackEngine;
  beforeAll(async () => {
    const tests = await Promise.all([TestEngine.open(url()), TestEngine.open(url())]);
    cli = await stockBeside(tests[0], "cli");
    [engine, other] = which === "go" ? [tests[0].engine, tests[1].engine] : [cli, await stockBeside(tests[1], "other")];
    return () => Promise.all([cli.close(), other.close(), ...tests.map((test) => test.close())]);
  });
  const program = () => void new Thing("a", { key: "a", value: "1" });

  it("has no owner at first, and works for none", async () => {
    expect(await engine.backendOwner()).toBeUndefined();
    await expect(engine.up("early", program, { owner: "one" })).rejects.toMatchObject({ reason: "BackendForeign" });
    expect(await engine.listStacks()).toEqual([]);
  });

  it("gives a backend to one of two who claim it at once, and tells both", async () => {
    const owners = await Promise.all([engine.claimBackend(ownerOf("one")), other.claimBackend(ownerOf("two"))]);
    expect(owners[0]).toEqual(owners[1]);
    expect(["one", "two"]).toContain(owners[0]?.id);
    expect(await other.backendOwner()).toEqual(owners[0]);
  });

  it("works for the owner alone, and `pulumi up` for all", async () => {
    const owner = (await engine.backendOwner())?.id ?? "";
    const refused = { reason: "BackendForeign", errorClass: "retryable" };
    expect((await engine.up("owned", program, { owner })).summary.result).toBe("succeeded");
    for (const work of [
      () => engine.up("owned", program, { owner: "another" }),
      () => engine.preview("owned", program, { owner: "another" }),
      () => engine.destroy("owned", { owner: "another", release: true }),
      () => engine.previewDestroy("owned", { owner: "another" }),
    ]) {
      await expect(work()).rejects.toMatchObject(refused);
    }
    expect((await cli.listStacks()).map(({ name }) => name)).toEqual(["owned"]);
    expect((await cli.up("owned", program)).summary.result).toBe("succeeded");
  });

  it("is taken over in place of the owner that it has, and of no other", async () => {
    const former = (await engine.backendOwner())?.id ?? "";
    expect((await other.claimBackend(ownerOf("three"), "someone")).id).toBe(former);
    expect((await other.claimBackend(ownerOf("three"), former)).id).toBe("three");
    await expect(engine.destroy("owned", { owner: former })).rejects.toMatchObject({ reason: "BackendForeign" });
    expect((await other.destroy("owned", { owner: "three" })).summary.result).toBe("succeeded");
  });
});

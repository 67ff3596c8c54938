import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { changesBetween, countsOf, readUpdateChanges } from "../../src/automation/update-changes";

const TYPE = "pulumi-nodejs:dynamic:ConfigMap";
const resource = (name: string, fields: object = {}) => ({
  urn: `urn:pulumi:s::kindstack::${TYPE}::${name}`,
  type: TYPE,
  id: name,
  modified: "2026-01-01T00:00:00Z",
  ...fields,
});
const scaffolding = {
  urn: "urn:pulumi:s::kindstack::pulumi:pulumi:Stack::kindstack-s",
  type: "pulumi:pulumi:Stack",
};

describe("the changes between two checkpoints", () => {
  it("are what was created, replaced, updated and deleted, by name", () => {
    const before = [scaffolding, resource("kept"), resource("moved"), resource("edited"), resource("gone")];
    const after = [
      { ...scaffolding, modified: "later" },
      resource("kept"),
      resource("moved", { id: "elsewhere" }),
      resource("moved", { delete: true }),
      resource("edited", { modified: "2026-01-02T00:00:00Z" }),
      resource("added"),
    ];
    expect(changesBetween(before, after)).toEqual([
      { operation: "create", type: "ConfigMap", name: "added" },
      { operation: "update", type: "ConfigMap", name: "edited" },
      { operation: "delete", type: "ConfigMap", name: "gone" },
      { operation: "replace", type: "ConfigMap", name: "moved" },
    ]);
  });

  it("are none when nothing was done", () => {
    expect(changesBetween([resource("kept")], [resource("kept")])).toEqual([]);
  });
});

describe("the history of a file backend", () => {
  let directory: string;
  beforeEach(() => {
    directory = fs.mkdtempSync(path.join(os.tmpdir(), "kindstack-history-"));
    fs.mkdirSync(path.join(directory, "history/kindstack/s"), { recursive: true });
  });
  afterEach(() => fs.rmSync(directory, { recursive: true, force: true }));

  const write = (time: number, what: "history" | "checkpoint", content: string | Buffer, ending = "") =>
    fs.writeFileSync(path.join(directory, `history/kindstack/s/s-${time}.${what}.json${ending}`), content);
  const names = async (entries: { resourceChanges?: Record<string, number> }[]) =>
    (await readUpdateChanges(directory, "s", entries)).map((changes) =>
      changes?.map(({ operation, name }) => `${operation} ${name}`),
    );
  const checkpoint = (...names: string[]) =>
    JSON.stringify({ version: 3, checkpoint: { latest: { resources: names.map((name) => resource(name)) } } });

  it("names the changes of an update whose checkpoint and the one before it are kept, compressed or not", async () => {
    for (const time of [101, 102, 103, 104]) write(time, "history", "{}");
    write(101, "checkpoint", checkpoint("a"));
    write(102, "checkpoint", gzipSync(checkpoint("a", "b")), ".gz");
    write(103, "checkpoint", checkpoint("b"));
    expect(await names([{}, {}, {}, {}])).toEqual([undefined, ["delete a"], ["create b"], undefined]);
  });

  it("names what the first update created, but not the resources of a restored stack", async () => {
    write(101, "history", "{}");
    write(101, "checkpoint", checkpoint("a", "b"));
    expect(await names([{ resourceChanges: { create: 3 } }])).toEqual([["create a", "create b"]]);
    expect(await names([{ resourceChanges: { same: 2, update: 1 } }])).toEqual([undefined]);
  });

  it("is empty where there is none", async () => {
    expect(await readUpdateChanges(directory, "other", [])).toEqual([]);
  });
});

describe("the counts of an update", () => {
  it("leave out what stayed the same", () => {
    expect(countsOf({ create: 2, same: 5, update: 1 })).toBe("2 create, 1 update");
    expect(countsOf({ same: 5 })).toBe("");
    expect(countsOf()).toBe("");
  });
});

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { checkLifecycle } from "kindstack/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { provider } from "../src/new-kind";

const inputs = { name: "one", owner: "default/one", text: "Sunday" };
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "new-kind-"));
  process.env.NEW_KIND_FOLDER = folder;
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const stored = (name: string) => JSON.parse(readFileSync(path.join(folder, `${name}.json`), "utf8"));

describe("the provider of NewKind", () => {
  it("takes a resource through its life", async () => {
    await checkLifecycle(provider, inputs, { ...inputs, text: "Monday" });
  });

  it("names each property that is wrong", async () => {
    const { failures } = await provider.check({}, { name: "No", owner: "default/one", text: "" });
    expect(failures.map(({ property }) => property)).toEqual(["name", "text"]);
  });

  it("replaces for another name", async () => {
    const { id, outs } = await provider.create(inputs);
    expect(await provider.diff(id, outs, { ...inputs, name: "two" })).toMatchObject({ replaces: ["name"] });
  });

  it("takes nothing of another owner, and deletes nothing of it", async () => {
    const { id, outs } = await provider.create(inputs);
    const other = { ...inputs, owner: "default/other" };
    await expect(provider.create(other)).rejects.toMatchObject({ errorClass: "terminal", reason: "Conflict" });
    await provider.delete(id, { ...outs, owner: "default/other" });
    expect(stored("one")).toEqual({ owner: "default/one", text: "Sunday", adopted: false });
  });

  it("adopts what has no owner, and leaves it there", async () => {
    writeFileSync(path.join(folder, "one.json"), JSON.stringify({ owner: "", text: "Friday" }));
    const { id, outs } = await provider.create(inputs);
    expect(stored("one")).toEqual({ owner: "default/one", text: "Sunday", adopted: true });
    await provider.delete(id, outs);
    expect(stored("one")).toEqual({ owner: "", text: "Sunday" });
  });

  it("remembers that it adopted when a crash has kept that out of the state", async () => {
    writeFileSync(path.join(folder, "one.json"), JSON.stringify({ owner: "", text: "Friday" }));
    await provider.create(inputs);
    const { id, outs } = await provider.create(inputs);
    await provider.delete(id, outs);
    expect(stored("one")).toEqual({ owner: "", text: "Sunday" });
  });

  it("tells what a write would overwrite", async () => {
    const { outs } = await provider.create(inputs);
    const monday = { ...inputs, text: "Monday" };
    expect(await provider.observe?.(monday, outs)).toEqual(stored("one"));
    expect(await provider.observe?.(undefined, { ...outs, owner: "default/other" })).toBeNull();
    rmSync(path.join(folder, "one.json"));
    expect(await provider.observe?.(monday, outs)).toBe("gone");
  });

  it("finds nothing where someone else has deleted it", async () => {
    const { id, outs } = await provider.create(inputs);
    rmSync(path.join(folder, "one.json"));
    expect(await provider.read(id, outs)).toEqual({});
    await provider.delete(id, outs);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("says whether time or a user can help", async () => {
    rmSync(folder, { recursive: true });
    await expect(provider.create(inputs)).rejects.toMatchObject({ errorClass: "retryable", reason: "SystemError" });
    delete process.env.NEW_KIND_FOLDER;
    await expect(provider.create(inputs)).rejects.toMatchObject({ errorClass: "terminal", reason: "Misconfigured" });
  });
});

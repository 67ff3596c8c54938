import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { DefinedProvider } from "../../../providers/dynamic";
import * as kindstack from "../../../stacks/contract/index";
import { useDirectory } from "../../directories";
import { succeeded } from "./host";
import { type EnginePair, openEnginePair } from "./script-engine";

interface HalfMade extends DefinedProvider {
  Folder: new (name: string, inputs: { folder: string; files: number }) => unknown;
}

const directory = useDirectory();
let engines: EnginePair;
let halfMade: HalfMade;
beforeAll(async () => {
  const { make } = require("./half-made.cjs") as { make(module: object): HalfMade };
  halfMade = make(kindstack);
  engines = await openEnginePair({}, [halfMade]);
});
afterAll(() => engines?.close());

describe.each(["hosted", "scripted"] as const)("what a create has made that fails halfway, %s", (engine) => {
  const folder = (name: string) => path.join(directory, `${engine}-${name}`, "folder");
  const filesIn = (name: string) => (fs.existsSync(folder(name)) ? fs.readdirSync(folder(name)) : undefined);
  const setFailing = (name: string, fails: boolean) => {
    const marker = path.join(folder(name), "../fail");
    fs.mkdirSync(path.dirname(marker), { recursive: true });
    if (fails) fs.writeFileSync(marker, "");
    else fs.rmSync(marker);
  };
  const up = async (name: string, options = {}) => {
    const program = () => void new halfMade.Folder("folder", { folder: folder(name), files: 3 });
    const ended = await engines[engine].up(`${engine}-${name}`, program, options).catch((error: Error) => error);
    return ended instanceof Error ? { summary: { result: "failed", resourceChanges: {} } } : ended;
  };
  const recorded = async (name: string) => {
    const state = await engines.hosted.exportStack(`${engine}-${name}`);
    return state?.deployment.resources?.find(({ urn }) => urn.endsWith("::folder"));
  };

  it("is recorded, and completed by the next update, also after a refresh", async () => {
    setFailing("a", true);
    expect(await up("a")).toMatchObject({ summary: { result: "failed" } });
    expect(filesIn("a")).toEqual(["1", "2"]);
    expect(await recorded("a")).toMatchObject({ id: folder("a"), outputs: { made: 2 } });
    expect(JSON.stringify(await recorded("a"))).not.toContain("halfway-secret");

    // What a refresh finds is no proof that it is whole.
    expect(await up("a", { refresh: true })).toMatchObject({ summary: { result: "failed" } });
    setFailing("a", false);
    expect(await up("a", { refresh: true })).toMatchObject(succeeded({ update: 1 }));
    expect(filesIn("a")).toEqual(["1", "2", "3"]);
    expect(await recorded("a")).toMatchObject({ outputs: { made: 3 } });
    expect(await up("a")).toMatchObject(succeeded({}));
    await engines[engine].destroy(`${engine}-a`);
  });

  it("is found by a deletion", async () => {
    setFailing("b", true);
    expect(await up("b")).toMatchObject({ summary: { result: "failed" } });
    expect(filesIn("b")).toEqual(["1", "2"]);

    await engines[engine].destroy(`${engine}-b`);

    expect(filesIn("b")).toBeUndefined();
    expect(await recorded("b")).toBeUndefined();
  });
});

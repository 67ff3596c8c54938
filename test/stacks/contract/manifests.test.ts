import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readManifests } from "../../../stacks/contract/manifests";

let directory: string;
beforeEach(() => {
  directory = fs.mkdtempSync(path.join(os.tmpdir(), "kindstack-manifests-"));
});
afterEach(() => fs.rmSync(directory, { recursive: true }));

function write(name: string, text: string): string {
  const file = path.join(directory, name);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, text);
  return file;
}

const thing = (name: string) => `apiVersion: v1\nkind: Thing\nmetadata: {name: ${name}}\n`;
const namesIn = (...paths: string[]) => readManifests(paths).map(({ manifest }) => manifest.metadata.name);

describe("manifests", () => {
  it("are read from all documents of a file, comments aside", () => {
    const file = write("things.yaml", `# two things\n---\n${thing("a")}---\n# nothing\n---\n${thing("b")}`);

    expect(namesIn(file)).toEqual(["a", "b"]);
  });

  it("are read from a folder's YAML and JSON files in the order of their names", () => {
    write("b.yml", thing("b"));
    write("a/deep.yaml", thing("deep"));
    write("c.json", JSON.stringify({ apiVersion: "v1", kind: "Thing", metadata: { name: "c" } }));
    write("readme.md", "no manifest");

    expect(namesIn(directory)).toEqual(["deep", "b", "c"]);
  });

  it("are taken out of Lists", () => {
    const items = ["a", "b"].map((name) => ({ apiVersion: "v1", kind: "Thing", metadata: { name } }));
    const file = write("list.json", JSON.stringify({ apiVersion: "v1", kind: "List", items }));

    expect(namesIn(file)).toEqual(["a", "b"]);
  });

  it.each([
    ["a document without a name", "things.yaml", `${thing("a")}---\nkind: Thing\n`, "document 2: apiVersion, kind"],
    ["text that is no YAML", "things.yaml", "a: [", "document 1: "],
    ["a folder without manifests", "readme.md", "", "no file in it ends with"],
  ])("refuse %s and say where it is", (_what, name, text, message) => {
    write(name, text);

    expect(() => readManifests([directory])).toThrow(message);
    expect(() => readManifests([directory])).toThrow(directory);
  });

  it("refuse a path that does not exist", () => {
    expect(() => readManifests([path.join(directory, "absent.yaml")])).toThrow("absent.yaml: there is no such file");
  });
});

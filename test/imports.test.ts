import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { filesUnder } from "./files";

/* Biome reports import cycles of files (`noImportCycles`); this is the same for folders. */

const ROOT = path.resolve(__dirname, "..");
const IMPORTED = /\b(?:from|import)\s*\(?\s*"(\.[^"]+)"/g;

/** The folders of the kinds. */
const KINDS = "stacks/kinds";
const KIND_FOLDERS = fs
  .readdirSync(path.join(ROOT, KINDS))
  .filter((name) => fs.existsSync(path.join(ROOT, KINDS, name, "sample.yaml")));

/** `src/cli` of `src/cli/run.ts`; a file of a top folder, or of the kinds', counts as itself. */
const folderOf = (file: string) => {
  const parts = path.relative(ROOT, file.replace(/\.(ts|js)$/, "")).split(path.sep);
  return parts.slice(0, parts.slice(0, 2).join("/") === KINDS ? 3 : 2).join("/");
};

/** Which folders each folder imports. */
function importsOf(top: string): Map<string, Set<string>> {
  const imports = new Map<string, Set<string>>();
  for (const name of fs.readdirSync(path.join(ROOT, top), { recursive: true, encoding: "utf8" })) {
    if (!name.endsWith(".ts")) continue;
    const file = path.join(ROOT, top, name);
    const folder = folderOf(file);
    const found = imports.get(folder) ?? new Set();
    imports.set(folder, found);
    for (const [, specifier = ""] of fs.readFileSync(file, "utf8").matchAll(IMPORTED)) {
      const imported = folderOf(path.resolve(path.dirname(file), specifier));
      if (imported !== folder) found.add(imported);
    }
  }
  return imports;
}

/** A way from a folder back to itself, if there is one. */
function cycleFrom(start: string, imports: Map<string, Set<string>>): string[] | undefined {
  const visited = new Set<string>();
  const search = (way: string[]): string[] | undefined => {
    for (const next of imports.get(way.at(-1) ?? "") ?? []) {
      if (next === start) return [...way, next];
      if (visited.has(next)) continue;
      visited.add(next);
      const cycle = search([...way, next]);
      if (cycle !== undefined) return cycle;
    }
    return undefined;
  };
  return search([start]);
}

describe("folders", () => {
  const imports = new Map([...importsOf("src"), ...importsOf("stacks"), ...importsOf("providers")]);

  it("import each other in one direction only", () => {
    expect(imports.size).toBeGreaterThan(20);
    const cycles = [...imports.keys()].flatMap((folder) => {
      const cycle = cycleFrom(folder, imports);
      return cycle === undefined ? [] : [cycle.join(" → ")];
    });
    expect(cycles).toEqual([]);
  });

  it("of stacks and providers import nothing of src, and providers nothing of stacks", () => {
    const reaches = (from: string, to: string) =>
      [...imports].some(([folder, found]) => folder.startsWith(from) && [...found].some((one) => one.startsWith(to)));
    expect([reaches("stacks/", "src/"), reaches("providers/", "src/"), reaches("providers/", "stacks/")]).toEqual([
      false,
      false,
      false,
    ]);
  });

  it("of the operator plan as previews do, by what both import, and import no previews", () => {
    expect(imports.get("src/controller")).toContain("src/plan");
    expect(imports.get("src/preview")).toContain("src/plan");
    const operators = ["src/plan", "src/controller", "src/operator"];
    expect(operators.filter((folder) => imports.get(folder)?.has("src/preview"))).toEqual([]);
  });

  it("of src import no kind by its name: the list of kinds is the only way to one", () => {
    expect(KIND_FOLDERS.length).toBeGreaterThan(3);
    const named = [...imports].flatMap(([folder, found]) =>
      KIND_FOLDERS.filter((kind) => folder.startsWith("src/") && found.has(`${KINDS}/${kind}`)).map((kind) => [
        folder,
        kind,
      ]),
    );
    expect(named).toEqual([]);
  });

  it("of src name no kind but in comments and examples", () => {
    const names = KIND_FOLDERS.filter((name) => name !== "tenant").map((name) => name.replace("-", ""));
    const name = new RegExp([...names, "capsule"].join("|"), "i"); // a tenant is also what an example is of
    const lines = filesUnder(path.join(ROOT, "src")).flatMap((file) => fs.readFileSync(file, "utf8").split("\n"));
    const code = lines.filter((line) => !/^\s*(\*|\/\*|\/\/|kindstack )/.test(line));
    expect(code.length).toBeGreaterThan(1000);
    expect(code.filter((line) => name.test(line))).toEqual([]);
  });
});

/** What package.json's `exports` makes public, as sources. */
const PUBLIC = Object.values(
  (JSON.parse(fs.readFileSync(path.join(ROOT, "package.json"), "utf8")) as { exports: Record<string, string> }).exports,
).map((file) => file.replace(/^\.\/dist\/(.*)\.js$/, "$1"));

it.each(KIND_FOLDERS)("the kinds use the package's public modules and nothing else of it: %s", (name) => {
  const folder = path.join(ROOT, KINDS, name);
  const imported = filesUnder(folder).flatMap((file) =>
    file.endsWith(".ts")
      ? [...fs.readFileSync(file, "utf8").matchAll(IMPORTED)].map(([, specifier = ""]) =>
          path.resolve(path.dirname(file), specifier),
        )
      : [],
  );
  const outside = imported.filter((file) => !file.startsWith(folder + path.sep));
  expect(outside).toContain(path.join(ROOT, "stacks/contract/index"));
  expect(outside.filter((file) => !PUBLIC.includes(path.relative(ROOT, file)))).toEqual([]);
});

import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { filesUnder } from "./files";

const read = (file: string) => fs.readFileSync(path.resolve(__dirname, "..", file), "utf8");

interface Package {
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
  integrity?: string;
  resolved?: string;
  hasInstallScript?: boolean;
}
const manifest = JSON.parse(read("package.json")) as Package & { allowScripts: Record<string, boolean> };
const { packages } = JSON.parse(read("package-lock.json")) as { packages: Record<string, Package> };
/** The folder that a clone takes its own Node.js from, and npm's link to it. */
const OWN = ["", "node_modules/kindstack-node", "tools/node"];
const installed = Object.entries(packages).filter(([where]) => !OWN.includes(where));
const nameOf = (where: string) => where.slice(where.lastIndexOf("node_modules/") + "node_modules/".length);

describe("the packages", () => {
  it("are those of the lock file, each with the digest of what was published, from a registry", () => {
    const { dependencies, devDependencies } = packages[""] ?? {};
    expect({ dependencies, devDependencies }).toEqual({
      dependencies: manifest.dependencies,
      devDependencies: manifest.devDependencies,
    });
    expect(installed.length).toBeGreaterThan(100);
    for (const [where, { integrity, resolved = "https://" }] of installed) {
      expect(integrity, where).toMatch(/^sha512-/);
      expect(resolved, where).toMatch(/^https:\/\//); // not a repository, not a file
    }
  });

  it("are all that the code imports: what another package brings may go with its next version", () => {
    const { dependencies = {} } = manifest;
    const imported = ["src", "providers", "stacks"]
      .flatMap((folder) => filesUnder(path.resolve(__dirname, "..", folder)))
      .filter((file) => file.endsWith(".ts"))
      .flatMap((file) => [
        ...fs.readFileSync(file, "utf8").matchAll(/^(?:import(?! type)|export|}).* from "([^".][^"]*)";$/gm),
      ])
      .map(([, module = ""]) => module.match(/^(@[^/]+\/)?[^/]+/)?.[0] ?? module)
      .filter((name) => !name.startsWith("node:"));
    expect(new Set(imported).size).toBeGreaterThan(20);
    expect([...new Set(imported)].filter((name) => !(name in dependencies))).toEqual([]);
  });

  it("run no script when they are installed", () => {
    expect(Object.values(manifest.allowScripts)).not.toContain(true);
  });

  it("that have such a script are known: anyone who adds one decides about it", () => {
    const scripted = new Set(
      installed.flatMap(([where, { hasInstallScript }]) => (hasInstallScript ? [nameOf(where)] : [])),
    );
    const undecided = [...scripted].filter((name) => !(name in manifest.allowScripts));
    expect(undecided).toEqual([]);
  });
});

it("have their version in package.json; pages and workflows that repeat it agree", () => {
  const { version } = JSON.parse(read("package.json")) as { version: string };
  const repeated = [
    "README.md",
    "docs/install.md",
    "docs/write-a-kind.md",
    ".github/workflows/preview.yml",
    ".github/workflows/approve.yml",
  ].flatMap((file) =>
    [...read(file).matchAll(/(?:kindstack:|\|\| 'v)(\d+\.\d+\.\d+)/g)].map(([, found]) => [file, found]),
  );
  expect(new Set(repeated.map(([file]) => file)).size).toBe(5);
  expect(repeated.filter(([, found]) => found !== version)).toEqual([]);
});

it("are built with a command that npx can run: of a checkout's own command npm does not see to that", () => {
  const { bin } = JSON.parse(read("package.json")) as { bin: Record<string, string> };
  expect(Object.keys(bin)).toEqual(["kindstack"]);
  for (const file of Object.values(bin)) {
    expect(fs.statSync(path.resolve(__dirname, "..", file)).mode & 0o111, file).toBe(0o111);
  }
});

import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import ts from "typescript";
import { beforeEach, describe, expect, it } from "vitest";
import { runCommand } from "../../src/cli/program";
import { namesOf } from "../../src/scaffold/names";
import { packageFiles } from "../../src/scaffold/templates";
import { testDirectory } from "../directories";
import { blocksOf } from "../e2e/blocks";
import { filesUnder } from "../files";

const ROOT = path.resolve(__dirname, "../..");

let directory: string;
beforeEach(() => {
  directory = testDirectory();
});

const read = (file: string) => fs.readFileSync(path.join(directory, file), "utf8");
const write = (file: string, text: string) => fs.writeFileSync(path.join(directory, file), text);
const create = (...words: string[]) => runCommand(["new", "kind", ...words]);
const written = () => filesUnder(directory).map((file) => path.relative(directory, file));

/** What the formatter and the linter of this repository say of the files. */
function lint(): void {
  fs.copyFileSync(path.join(ROOT, "biome.json"), path.join(directory, "biome.json"));
  const words = ["check", "--error-on-warnings", "--vcs-enabled=false", "--config-path", directory, directory];
  execFileSync(path.join(ROOT, "node_modules/.bin/biome"), words, { stdio: "pipe" });
}

describe("the names of a new kind", () => {
  it.each([
    ["Notice", { plural: "notices", singular: "notice", folder: "notice", constant: "notice" }],
    ["BackupPolicy", { plural: "backuppolicies", folder: "backup-policy", constant: "backupPolicy" }],
    ["DNSProxy", { plural: "dnsproxies", folder: "dns-proxy", constant: "dnsProxy" }],
    ["Mailbox", { plural: "mailboxes" }],
    ["ApiKey", { plural: "apikeys" }],
    ["TimeSeries", { plural: "timeseries" }],
    ["ContactPerson", { plural: "contactpeople" }],
    ["Child", { plural: "children" }],
    ["Human", { plural: "humans" }],
    ["SearchIndex", { plural: "searchindices" }],
    ["Analysis", { plural: "analyses" }],
    ["IPLeaf", { plural: "ipleaves" }],
    ["Switch", { plural: "switches", singular: "switch", folder: "switch", constant: "switchKind" }],
    ["Expect", { folder: "expect", constant: "expectKind" }],
    ["Module", { folder: "module", constant: "moduleKind" }],
  ])("follow from its own: %s", (kind, names) => {
    expect(namesOf(kind, "example.com")).toMatchObject({ kind, group: "example.com", ...names });
  });

  it("are refused where Kubernetes would refuse them", () => {
    expect(() => namesOf("notice", "example.com")).toThrow('the name "notice" must');
    expect(() => namesOf("Notice", "example")).toThrow("--group example");
    expect(() => namesOf("Notice", "example.com", "No")).toThrow("--plural No");
  });
});

describe("kindstack new kind", () => {
  it("writes a folder of this repository that the linter takes, and adds it to the list", async () => {
    fs.mkdirSync(path.join(directory, "stacks/kinds"), { recursive: true });
    fs.copyFileSync(path.join(ROOT, "stacks/kinds/index.ts"), path.join(directory, "stacks/kinds/index.ts"));

    expect(await create("BackupPolicy", "--dir", directory)).toBe(0);

    expect(read("stacks/kinds/index.ts")).toContain('import { backupPolicy } from "./backup-policy/kind";\n');
    expect(read("stacks/kinds/index.ts")).toMatch(/\[tenant, .*, backupPolicy\];/);
    expect(written()).toContain("test/stacks/kinds/backup-policy/kind.test.ts");
    lint();
  });

  it("writes a package that the linter takes, over what npm has made of the folder", async () => {
    write("package.json", '{ "name": "notices", "main": "index.js", "dependencies": { "kindstack": "file:k.tgz" } }');

    expect(await create("Notice", "--package", "--dir", directory)).toBe(0);

    expect(JSON.parse(read("package.json"))).toMatchObject({
      name: "notices",
      main: "dist/index.js",
      peerDependencies: { kindstack: expect.stringMatching(/^\^\d/) },
      devDependencies: { kindstack: "file:k.tgz", typescript: expect.any(String), vitest: expect.any(String) },
    });
    expect(JSON.parse(read("package.json"))).not.toHaveProperty("dependencies");
    expect(written()).toEqual(expect.arrayContaining(["sample.yaml", "src/notice/kind.ts", "test/notice.test.ts"]));
    lint();
  });

  it("adds a kind to a package that has one", async () => {
    expect(await create("Notice", "--package", "--dir", directory)).toBe(0);
    expect(await create("Switch", "--package", "--dir", directory)).toBe(0);

    expect(read("src/index.ts")).toBe(
      'export { notice } from "./notice/kind";\nexport { switchKind } from "./switch/kind";\n',
    );
    const samples = [/kind: Notice/, /kind: Switch/].map((kind) => expect.stringMatching(kind));
    expect(read("sample.yaml").split("---\n")).toEqual(samples);
    const files = ["notice", "switch"].flatMap((name) => [`src/${name}/kind.ts`, `test/${name}.test.ts`]);
    expect(written()).toEqual(expect.arrayContaining(files));
    lint();
    expect(await create("Switch", "--package", "--dir", directory)).toBe(1);
  });

  it("takes Kindstack from the file that a folder above has it from", async () => {
    write("package.json", '{ "devDependencies": { "kindstack": "file:k.tgz" } }');

    expect(await create("Notice", "--package", "--dir", path.join(directory, "kinds/notice"))).toBe(0);

    const devDependencies = { kindstack: "file:../../k.tgz" };
    expect(JSON.parse(read("kinds/notice/package.json"))).toMatchObject({ devDependencies });
  });

  it("takes Kindstack from the clone that writes it, where no folder says from where: the name on npm may be another's", async () => {
    expect(await create("Notice", "--package", "--dir", directory)).toBe(0);

    const { devDependencies } = JSON.parse(read("package.json")) as { devDependencies: Record<string, string> };
    expect(path.resolve(directory, devDependencies.kindstack?.replace(/^file:/, "") ?? "")).toBe(ROOT);
  });

  it("writes modules that the compiler can read, whatever the kind is called", () => {
    for (const kind of ["Await", "Class", "Default", "Delete", "Enum", "Function", "Interface", "Switch"]) {
      const names = namesOf(kind, "example.com");
      const { [`src/${names.folder}/kind.ts`]: module = "", "src/index.ts": index = "" } = packageFiles(names, {});
      for (const text of [module, index, `import * as ${names.constant} from "./a";`]) {
        const { diagnostics } = ts.transpileModule(text, { reportDiagnostics: true });
        const problems = diagnostics?.map(({ messageText }) => messageText);
        expect(problems, kind).toEqual([]);
      }
    }
  });

  it("writes the files that the page shows", () => {
    const generated = packageFiles(namesOf("Notice", "example.com"), {});
    const shown = blocksOf("docs/write-a-kind.md").filter(({ file }) => file !== undefined && file in generated);
    expect(shown.map(({ file, text }) => [file, text])).toEqual(
      ["src/notice/schema.ts", "src/notice/program.ts", "src/notice/kind.ts"].map((file) => [file, generated[file]]),
    );
  });

  it("overwrites nothing", async () => {
    fs.mkdirSync(path.join(directory, "src/notice"), { recursive: true });
    write("src/notice/kind.ts", "mine");

    expect(await create("Notice", "--package", "--dir", directory)).toBe(1);

    expect(written()).toEqual(["src/notice/kind.ts"]);
    expect(read("src/notice/kind.ts")).toBe("mine");
    expect(await create("notice", "--package", "--dir", directory)).toBe(2);
  });
});

describe("kindstack new provider", () => {
  const createProvider = (...words: string[]) => runCommand(["new", "provider", ...words, "--dir", directory]);

  it("writes a provider that the linter takes, of the package that is there", async () => {
    write("package.json", '{\n  "name": "@acme/kinds"\n}\n');
    expect(await createProvider("BackupTarget")).toBe(0);
    expect(written()).toEqual(["package.json", "src/backup-target.ts", "test/backup-target.test.ts"]);
    expect(read("src/backup-target.ts")).toContain('defineProvider("@acme/kinds/dist/backup-target", methods)');
    lint();
  });

  it("refuses a folder without a package, a name that is none, and to overwrite", async () => {
    expect(await createProvider("Bucket")).toBe(1);
    write("package.json", "{}");
    expect(await createProvider("Bucket")).toBe(1);
    expect(written()).toEqual(["package.json"]);
    expect(await createProvider("bucket")).toBe(2);
    write("package.json", '{ "name": "kinds" }');
    expect(await createProvider("Bucket")).toBe(0);
    expect(await createProvider("Bucket")).toBe(1);
    expect(await createProvider("Promise")).toBe(0);
    expect(read("src/promise.ts")).toContain("class PromiseResource extends DynamicResource");
  });
});

import fs from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { registeredBy } from "../../../src/testing/registered";
import { kindName } from "../../../stacks/contract/kind";
import { loadKinds, portableWords, requireKinds, sampleOf } from "../../../stacks/kinds/catalog";
import { kinds as builtIn } from "../../../stacks/kinds/index";
import { testDirectory } from "../../directories";

let directory: string;
beforeEach(() => {
  directory = testDirectory();
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

function write(file: string, text: string): void {
  const target = path.join(directory, file);
  fs.mkdirSync(path.dirname(target), { recursive: true });
  fs.writeFileSync(target, text);
}

/** A module of one kind, in TypeScript unless `imports` says otherwise. */
const moduleOf = (
  fields: Record<string, unknown> = {},
  { head = 'import { defineKind, Type } from "kindstack";', directory = "__dirname" } = {},
) => `${head}
const fields${head.startsWith("import") ? ": object" : ""} = ${JSON.stringify(fields)};
export_const({
  group: "example.com", version: "v1", kind: "Notice", plural: "notices", singular: "notice", scope: "Namespaced",
  description: "A text.", spec: Type.Object({ text: Type.String() }), status: Type.Object({}), columns: [], owns: [],
  directory: ${directory}, program() {}, report: () => ({}), ...fields,
});`;
const typescript = (fields?: Record<string, unknown>) =>
  moduleOf(fields)
    .replace("export_const(", "export const notice = defineKind(")
    .replace("...fields", "...(fields as {})");

const load = (...words: string[]) => loadKinds(words, directory);
const namesOf = (...words: string[]) => load(...words).kinds.map(kindName);

describe("loadKinds", () => {
  it("takes names of built-in kinds, all of them by default", () => {
    expect(load()).toEqual({ words: [], kinds: builtIn, problems: [], entries: [], files: [] });
    expect(namesOf("all")).toEqual(builtIn.map(kindName));
    expect(namesOf("memcached", "podsets", "podset")).toEqual([
      "podsets.batch.tutorial.kubebuilder.io",
      "memcacheds.cache.example.com",
    ]);
    expect(() => load("nothing")).toThrow("there is no kind nothing");
  });

  it("loads TypeScript of a folder, with this package as kindstack", async () => {
    write(
      "src/index.ts",
      `import { defineKind, type ProgramContext, Type } from "kindstack";
import { KubernetesObject } from "kindstack/providers/kubernetes";
enum Of { kind = "ConfigMap" }
export const notice = defineKind({
  group: "example.com", version: "v1", kind: "Notice", plural: "notices", singular: "notice", scope: "Namespaced",
  description: "A text.", spec: Type.Object({}), status: Type.Object({}), columns: [], owns: [],
  directory: __dirname, report: () => ({}),
  program(_: unknown, { owner }: ProgramContext) {
    new KubernetesObject("one", { owner, manifest: { apiVersion: "v1", kind: Of.kind, metadata: { name: "one" } } });
  },
});`,
    );
    const { kinds, problems } = load("./src");

    expect(problems).toEqual([]);
    expect(kinds.map(kindName)).toEqual(["notices.example.com"]);
    expect(await registeredBy((object, context) => kinds[0]?.program(object, context))).toMatchObject([
      { name: "one", inputs: { manifest: { kind: "ConfigMap" } } },
    ]);
    expect(kinds[0]?.directory).toBe(path.join(directory, "src"));
  });

  const [REQUIRED, IMPORTED] = ['= require("kindstack");', 'from "kindstack";'];
  it.each([
    ["commonjs", `const { defineKind, Type } ${REQUIRED}`, "__dirname", "exports.notice = "],
    ["module", `import { defineKind, Type } ${IMPORTED}`, "import.meta.dirname", "export const notice = "],
  ])("loads a compiled package of the type %s by its name", (type, head, here, exported) => {
    const manifest = { name: "@acme/notice", type, main: "dist/index.js" };
    write("node_modules/@acme/notice/package.json", JSON.stringify(manifest));
    const text = moduleOf({}, { head, directory: here })
      .replace(": object", "")
      .replace("export_const(", `${exported}defineKind(`);
    write("node_modules/@acme/notice/dist/index.js", text);
    write("node_modules/@acme/notice/sample.yaml", "");

    const { kinds, problems } = load("all", "@acme/notice");

    expect(problems).toEqual([]);
    expect(kinds.map(kindName)).toEqual([...builtIn.map(kindName), "notices.example.com"]);
    const sample = fs.realpathSync(path.join(directory, "node_modules/@acme/notice/sample.yaml"));
    expect(kinds.at(-1) && sampleOf(kinds.at(-1) as (typeof kinds)[number])).toBe(sample);
  });

  it("gives imports of CommonJS packages as the TypeScript compiler does", () => {
    write("node_modules/plain/index.js", "module.exports = { dump: () => 'dumped' };");
    write("node_modules/callable/index.js", "module.exports = function pool() { return 'pooled'; };");
    const transpiled = "exports.__esModule = true; exports.default = () => 'both'; exports.part = 1;";
    write("node_modules/transpiled/index.js", transpiled);
    write("local.cjs", "module.exports = class Local {};");
    write(
      "src/index.ts",
      `import plain, { dump } from "plain";
import * as whole from "plain";
import pool from "callable";
import both, { part } from "transpiled";
import Local from "../local.cjs";
${typescript()}
(notice as { description: string }).description = [plain.dump(), dump(), whole.dump(), pool(), both(), part, new Local().constructor.name].join(" ");`,
    );

    const { kinds, problems } = load("./src");

    expect(problems).toEqual([]);
    expect(kinds[0]?.description).toBe("dumped dumped dumped pooled both 1 Local");
  });

  it("takes a name of a kind for the kind, though a package has the same", () => {
    write("node_modules/memcached/package.json", '{ "name": "memcached", "main": "index.js" }');
    write("node_modules/memcached/index.js", "module.exports = class {};");
    vi.spyOn(process, "cwd").mockReturnValue(directory);

    expect(namesOf("memcached")).toEqual(["memcacheds.cache.example.com"]);
    expect(portableWords(["memcached"])).toEqual(["memcached"]);
    write("node_modules/all/package.json", '{ "name": "all", "main": "index.js" }');
    write("node_modules/all/index.js", "");
    expect(namesOf("all")).toEqual(builtIn.map(kindName));
    expect(portableWords(["all"])).toEqual(["all"]);
  });

  it("takes a kind that is all that a module exports", () => {
    const head = 'const { defineKind, Type } = require("kindstack");';
    write("one/index.cjs", moduleOf({}, { head }).replace("export_const(", "module.exports = defineKind("));

    expect(load("./one")).toMatchObject({ kinds: [{ kind: "Notice" }], problems: [] });
  });

  it("reports what does not load, by its name and place, and loads the rest", () => {
    write("broken/index.ts", "const a = ;");
    write("empty/index.ts", "export const a = 1;");
    write("unbuilt/package.json", '{ "main": "dist/index.js" }');
    write("wrong/index.ts", typescript({ plural: "No Tices" }));
    write("right/index.ts", typescript());

    const { kinds, problems } = load("./broken", "./empty", "./unbuilt", "./wrong", "./nowhere", "./right");

    expect(kinds.map(kindName)).toEqual(["notices.example.com"]);
    expect(problems.map(({ name }) => name)).toEqual(["./broken", "./empty", "./unbuilt", "./wrong", "./nowhere"]);
    const messages = problems.map(({ message }) => message);
    expect(messages[0]).toMatch(/broken\/index\.ts.*1:10|1:10.*broken\/index\.ts/s);
    expect(messages[1]).toContain("export what defineKind returns");
    expect(messages[2]).toContain("build it first");
    expect(messages[3]).toContain('Notice: plural: "No Tices" must match pattern');
    expect(messages[4]).toContain("there is no");
    expect(() => requireKinds(load("./empty"))).toThrow("./empty: ");
  });

  it("reports a kind of a package that cannot be served, and loads the package's others", () => {
    const bad = typescript({ kind: "Bad", plural: "bads", singular: "bad" });
    write("src/bad.ts", bad.replace("text: Type.String()", "pair: Type.Tuple([])"));
    write("src/good.ts", typescript());
    write("src/index.ts", 'export { notice as bad } from "./bad"; export { notice } from "./good";');

    const { kinds, problems } = load("./src");

    expect(problems).toEqual([
      { name: "./src", message: "Bad: spec.pair: a CRD has no tuples: write Type.Object with a field for each item" },
    ]);
    expect(kinds.map(kindName)).toEqual(["notices.example.com"]);
  });

  it("reports a kind of the same name as another, which stays", () => {
    write("a/index.ts", typescript());
    write("b/index.ts", typescript({ plural: "noticelist" }));
    write("c/index.ts", typescript({ group: "batch.tutorial.kubebuilder.io", kind: "PodSet", plural: "podsets" }));

    const { kinds, problems } = load("podsets", "./a", "./b", "./c");

    expect(kinds.map(kindName)).toEqual(["podsets.batch.tutorial.kubebuilder.io", "notices.example.com"]);
    expect(kinds[0]).toBe(builtIn.find(({ kind }) => kind === "PodSet"));
    expect(problems).toMatchObject([
      { name: "noticelist.example.com (Notice)", message: expect.stringMatching("./b declares it, and so does ./a") },
      { name: "podsets.batch.tutorial.kubebuilder.io (PodSet)" },
    ]);
  });

  it("adds the kinds of the environment's folder, which can be chosen by name", () => {
    write("kinds/notice/index.ts", typescript());
    vi.stubEnv("KINDSTACK_KINDS_DIRECTORY", path.join(directory, "kinds"));

    expect(loadKinds().kinds.map(kindName)).toEqual([...builtIn.map(kindName), "notices.example.com"]);
    expect(loadKinds(["notices"]).kinds.map(kindName)).toEqual(["notices.example.com"]);
    vi.stubEnv("KINDSTACK_KINDS", "podsets,notices.example.com");
    expect(loadKinds().kinds).toHaveLength(2);
  });
});

import { mkdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { TerminalError } from "../../../providers/errors";
import { readManifests, requireManifests } from "../../../stacks/contract/manifests";
import { parseManifests } from "../../../stacks/contract/parse-manifests";
import { testDirectory } from "../../directories";

const TENANT = "apiVersion: multitenancy.codereliant.io/v1\nkind: Tenant\nmetadata: { name: acme }\n";
const parse = (text: string) => parseManifests(text, "objects.yaml", { strict: true });
/** What a problem of the file says. */
const problem = (message: string) => [{ file: "objects.yaml", message: expect.stringContaining(message) }];
const listOf = (apiVersion: string, kind: string, item: string) =>
  `apiVersion: ${apiVersion}\nkind: ${kind}\nitems:\n  - ${item.trim().replaceAll("\n", "\n    ")}\n`;
const nameOf = ({ manifest }: { manifest: unknown }) => (manifest as { metadata?: { name: string } }).metadata?.name;
const namesOf = ({ objects }: { objects: readonly { manifest: unknown }[] }) => objects.map(nameOf);

describe("a manifest file", () => {
  it("may hold many documents, empty ones and lists among them", () => {
    const found = parse(`---\n---\n${TENANT}---\n# nothing\n---\n${listOf("v1", "List", TENANT)}`);
    expect(found.problems).toEqual([]);
    expect(namesOf(found)).toEqual(["acme", "acme"]);
  });

  it.each([
    '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}',
    '{\n\t"apiVersion": "v1",\n\t"kind": "A",\n\t"metadata": {"name": "a"}\n}',
  ])("may be JSON: %j", (text) => {
    expect(namesOf(parse(text))).toEqual(["a"]);
  });

  it("is read as the API's own tools read YAML: `no` is false, a date is a text, 1:30 is one too", () => {
    const [object] = parse(`${TENANT}spec: { a: no, b: 2001-12-14, c: 1:30, d: "no" }\n`).objects;
    expect(object?.manifest.spec).toEqual({ a: false, b: "2001-12-14", c: "1:30", d: "no" });
  });

  it.each([
    ["true", "yes", true],
    ["octal as in YAML 1.1", "0644", 420],
    ["octal as in YAML 1.2", "0o644", 420],
    ["no octal", "0899", 899],
    ["hexadecimal", "0xFf", 255],
    ["binary", "-0b101", -5],
    ["with underscores", "1_000", 1000],
    ["a float", "-.5e3", -500],
    ["nothing", "", null],
    ["null", "~", null],
    ["a version", "1.2.3", "1.2.3"],
    ["a word", "yesterday", "yesterday"],
  ])("is read by go-yaml's rules: %s", (_, text, value) => {
    const [object] = parse(`${TENANT}spec: { a: ${text} }\n`).objects;
    expect(object?.manifest.spec).toEqual({ a: value });
  });

  it("may have Windows' line ends, a byte-order mark, comments and merges", () => {
    const text = `\uFEFF# first\n---  # a\n${TENANT}spec: { a: &a { b: 1 }, c: { <<: *a, d: 2 } }\n---\n# last\n`;
    const found = parse(text.replaceAll("\n", "\r\n"));
    expect(found.problems).toEqual([]);
    expect(found.objects.map(({ manifest }) => manifest.spec)).toEqual([{ a: { b: 1 }, c: { b: 1, d: 2 } }]);
  });

  it.each([
    ["List", TENANT],
    ["TenantList", TENANT],
    ["TenantList", "metadata: { name: acme }\n"],
  ])("may hold a %s of %j", (kind, item) => {
    const found = parse(listOf("multitenancy.codereliant.io/v1", kind, item));
    expect(found.problems).toEqual([]);
    expect(found.objects).toMatchObject([
      { manifest: { apiVersion: "multitenancy.codereliant.io/v1", kind: "Tenant", metadata: { name: "acme" } } },
    ]);
  });

  it.each([
    ["without a name", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a]\n"],
    ["with a generated name", "apiVersion: batch/v1\nkind: Job\nmetadata: { generateName: a- }\n"],
    ["that is an empty list", "apiVersion: v1\nkind: ConfigMapList\nmetadata: {}\n"],
    ["with a number for a name", "apiVersion: v1\nkind: Namespace\nmetadata: { name: 1 }"],
  ])("may hold an object of another's %s, which is for others to judge", (_, text) => {
    expect(parse(text)).toMatchObject({ objects: [{}], problems: [] });
  });

  it.each([
    ["bad syntax", "a: [1, 2", "line 2: flow sequence"],
    ["a duplicate key", `${TENANT}kind: Tenant\n`, "line 4: duplicated mapping key"],
    ["text", "just words", "is not a Kubernetes object"],
    ["a list", "- a\n- b", "is not a Kubernetes object"],
    ["no kind", "apiVersion: v1", "is not a Kubernetes object"],
    ["an alias of nothing", "a: *nothing", "line 1: unidentified alias"],
  ])("with %s is reported with its place and what is wrong, without its content", (_, text, message) => {
    const { objects, problems } = parse(text);
    expect(objects).toEqual([]);
    expect(problems).toEqual(problem(message));
    expect(problems[0]?.message).not.toMatch(/nothing|just|Tenant/);
  });

  it.each([
    ["an error", "a: [", /^document 2: line \d: flow sequence/],
    ["what is no object", "words", /^document 2: is not a Kubernetes object$/],
  ])("with %s keeps the documents before and after it", (_, text, message) => {
    const found = parse(`${TENANT}---\n${text}\n---\n${TENANT.replace("acme", "after")}`);
    expect(namesOf(found)).toEqual(["acme", "after"]);
    expect(found.problems).toEqual([{ file: "objects.yaml", message: expect.stringMatching(message) }]);
  });

  it("cannot grow without bounds by its aliases", () => {
    const levels = Array.from({ length: 9 }, (_, n) => `l${n + 1}: &l${n + 1} [${`*l${n},`.repeat(9)}]`);
    const found = parse(`l0: &l0 [lol]\n${levels.join("\n")}\n`);
    expect(found.problems).toEqual(problem("more than 2000000 values behind its aliases"));
  });

  it.each([
    ["a list that holds itself", "spec: &a [*a]"],
    ["a list that holds itself twice", "spec: &a [*a, *a]"],
    ["a map that holds itself further down", "spec: &a { b: { c: *a } }"],
    ["a label that holds itself", "metadata: &a { name: a, labels: *a }"],
    ["300 levels", `spec: ${"[".repeat(300)}${"]".repeat(300)}`],
    [
      "110 levels, 110 times deeper by aliases",
      `a0: &a0 {}\n${Array.from({ length: 109 }, (_, n) => `a${n + 1}: &a${n + 1} { b: { c: *a${n} } }`).join("\n")}`,
    ],
  ])("cannot hold %s", (_, text) => {
    const metadata = text.startsWith("metadata") ? "" : "metadata: { name: a }\n";
    const { objects, problems } = parse(`apiVersion: v1\nkind: Namespace\n${metadata}${text}\n`);
    expect(objects).toEqual([]);
    const message = expect.stringMatching(/nested deeper than 200 levels, or holds itself|nesting exceeded maxDepth/);
    expect(problems).toEqual([{ file: "objects.yaml", message }]);
  });

  it("may be nested as deep as any object is", () => {
    expect(parse(`${TENANT}spec: ${"[".repeat(150)}${"]".repeat(150)}\n`).objects).toHaveLength(1);
  });

  it("cannot hold tags that mean something else than their text", () => {
    const found = parse(`${TENANT}spec: !!js/function "() => 1"\n`);
    expect(found.objects).toEqual([]);
    expect(found.problems[0]?.message).toBe("line 4: unresolved tag");
  });

  it.each([
    ["U+0085", "size: 3 # three\u0085  port: 1", "line 4: U+0085, at which other readers end a line"],
    ["U+2028", "a: 1 # by the team\u2028kind: Memcached", "line 4: U+2028, at which other readers end a line"],
    ["U+2029", "a: 'x\u2029y'", "line 4: U+2029, at which other readers end a line"],
    ["a carriage return in a comment", "a: 1 # c\rb: 2", "line 4: a carriage return within a line"],
    ["a control character", "a: x\u0001", "line 4: a control character"],
    ["a document end", "a: 1\n...\nb: 2", "line 5: another document after the end of this one"],
    ["a directive", "%YAML 1.2", "line 4: a directive"],
    ["a document behind a separator", "--- {kind: A}", "line 4: --- is followed by something"],
    ["a number that is not exact", "a: 9007199254740993", "line 4: a number that not every reader reads exactly"],
    ["infinity", "a: .inf", "line 4: a number that not every reader reads exactly"],
    ["a merge that overrides", "b: &b {a: 1}\nc: {a: 2, <<: *b}", "line 5: a merge after a key that it sets"],
    ["a key that is equal as a text", "a: {1: x, '1': y}", "line 4: duplicated mapping key"],
    ["a block of blanks", "a: |1\n    \n", "line 4: a block with lines of blanks alone"],
  ])("is refused for %s, which other readers read in another way", (_, text, message) => {
    expect(parse(`${TENANT}${text}\n`).problems).toEqual(problem(message));
  });

  it("splits its documents at lines of three dashes, also within a block, as kubectl does", () => {
    const found = parse(`${TENANT}spec:\n  a: |\n---\n${TENANT}`);
    expect(found.objects).toMatchObject([{ manifest: { spec: { a: "" } } }, { manifest: { kind: "Tenant" } }]);
  });

  it.each([
    ["duplicate keys", '{"kind":"A","apiVersion":"v1","spec":{"a":1,"\\u0061":2}}', "duplicated mapping key"],
    ["a number that is not exact", '{"kind":"A","n":9007199254740993}', "a number that not every reader reads exactly"],
    ["half a surrogate pair", '{"kind":"A","n":"\\ud800"}', "half of a surrogate pair"],
    ["text after two objects", '{"kind":"A"}\n{"kind":"B"}\nkind: C', "JSON is followed by what is no JSON object"],
    ["another value after it", '{"kind":"A"}\ntrue{"kind":"B"}', "JSON is followed by what is no JSON object"],
    ["a blank that is no space before it", '\u00a0{"kind":"A"}', "line 1: a blank that is no space"],
  ])("of JSON is refused for %s", (_, text, message) => {
    const { problems } = parseManifests(text, "objects.yaml", { strict: false });
    expect(problems).toEqual(problem(message));
  });

  it("is a list where it has items, whatever its kind says", () => {
    const found = parse(listOf("v1", "ConfigMap", TENANT));
    expect(namesOf(found)).toEqual(["acme"]);
  });

  it("changes no other object by the names of its fields", () => {
    const [object] = parse(`${TENANT}spec: { __proto__: { polluted: true }, constructor: { prototype: 1 } }\n`).objects;
    expect(Object.getPrototypeOf(object?.manifest.spec)).toBe(Object.prototype);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  it("cannot exhaust the stack by its depth", () => {
    const found = parse("[".repeat(50_000));
    expect(found.problems).toHaveLength(1);
  });
});

describe("a folder of manifests", () => {
  let folder: string;
  beforeEach(() => {
    folder = testDirectory();
  });

  async function write(file: string, text: string | Buffer = TENANT): Promise<void> {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), text);
  }
  async function link(target: string, file: string): Promise<void> {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await symlink(target, join(folder, file));
  }
  const inFolder = (...names: string[]) => names.map((name) => join(folder, name));
  const leadsOutside = (...names: string[]) =>
    inFolder(...names).map((file) => ({ file, message: "it is a link to a file outside of the folder" }));

  it("is read with all below it that kubectl reads, hidden or not", async () => {
    const hidden = [".zz.yaml", ".h/four.yaml", "node_modules/five.yaml"];
    for (const file of ["one.yaml", "a/b/two.yml", "a/three.json", ".git/no.yaml", ...hidden, "no.txt", "NO.YAML"]) {
      await write(file, TENANT.replace("acme", file.replace(/\W/g, "-")));
    }
    await write("values.yaml", "replicas: 3\n");
    const found = await readManifests([folder]);
    expect(found.problems).toEqual([]);
    expect(found.notes).toEqual([`${join(folder, "NO.YAML")} is not read: kubectl reads .yaml, .yml and .json`]);
    const files = [".h/four.yaml", ".zz.yaml", "a/b/two.yml", "a/three.json", "node_modules/five.yaml", "one.yaml"];
    expect(found.objects.map(({ file }) => file.slice(folder.length + 1))).toEqual(files);
  });

  it("may have links within it, but none that lead to another file of the machine", async () => {
    await write("sub/real.yaml");
    await link("sub/real.yaml", "inside.yaml");
    await link("/proc/self/environ", "outside.yaml");

    const found = await readManifests([folder]);

    expect(namesOf(found)).toEqual(["acme", "acme"]);
    expect(found.problems).toEqual(leadsOutside("outside.yaml"));
  });

  it("may be no link itself that leads elsewhere, nor may a file, whatever it holds", async () => {
    await write("elsewhere/secret.yaml", "password: [hidden\n");
    await link("../elsewhere", "repository/manifests");
    await link("../elsewhere/secret.yaml", "repository/one.yaml");
    const links = ["manifests", "one.yaml", "manifests/secret.yaml"].map((name) => `repository/${name}`);

    const found = await readManifests(inFolder(...links));

    expect(found.objects).toEqual([]);
    expect(found.problems).toEqual(leadsOutside(...links));
  });

  it("may be no link into what git keeps, such as a checkout's token", async () => {
    await write(".git/config", "extraheader: [secret");
    await link(".git/config", "one.yaml");
    await link("../.git/config", "manifests/two.yaml");

    const found = await readManifests(inFolder("one.yaml", "manifests"));

    expect(found.objects).toEqual([]);
    const intoGit = { file: join(folder, "one.yaml"), message: "it is a link into .git" };
    expect(found.problems).toEqual([intoGit, ...leadsOutside("manifests/two.yaml")]);
  });

  it("may be a link within its repository", async () => {
    await mkdir(join(folder, ".git"));
    await write("shared/tenant.yaml");
    await link("../shared", "overlays/prod");
    expect(namesOf(await readManifests(inFolder("overlays/prod")))).toEqual(["acme"]);
  });

  it("does not hide one file's problem behind another's", async () => {
    await write("bad.yaml", "a: [");
    await write("good.yaml");
    const found = await readManifests([folder, join(folder, "missing.yaml")]);
    expect(namesOf(found)).toEqual(["acme"]);
    expect(found.problems.map(({ file }) => file)).toEqual(inFolder("bad.yaml", "missing.yaml"));
  });

  it("takes a path that does not exist for empty when it may be gone", async () => {
    expect(await readManifests([join(folder, "missing")], true)).toEqual({ objects: [], problems: [], notes: [] });
  });

  it("is not read further than a manifest is long, also where no size is known before", async () => {
    await write("huge.yaml", `# ${"x".repeat(5 * 1024 * 1024)}\n${TENANT}`);
    await write("large.yaml", `# ${"x".repeat(1024 * 1024)}\n${TENANT}`);
    const found = await readManifests([folder, "/dev/zero"]);
    expect(namesOf(found)).toEqual(["acme"]);
    const message = "it has more than the 5242880 bytes that a manifest may have";
    expect(found.problems).toEqual([...inFolder("huge.yaml"), "/dev/zero"].map((file) => ({ file, message })));
  });

  it("is all or nothing where none may be missing", async () => {
    await write("good.yaml");
    expect((await requireManifests([folder])).map(nameOf)).toEqual(["acme"]);
    await write("bad.yaml", "a: [");
    await expect(requireManifests([folder])).rejects.toThrow(TerminalError);
    await expect(requireManifests([folder])).rejects.toThrow("bad.yaml: ");
  });

  it("that holds nothing is refused where something is needed", async () => {
    await expect(requireManifests([folder])).rejects.toThrow(`there is no Kubernetes object in ${folder}`);
  });

  it("has charts, whose templates are manifests where kubectl would read them, and kustomizations: both are told", async () => {
    await write("chart/Chart.yaml", "name: chart\n");
    await write("chart/templates/plain.yaml");
    await write("chart/templates/template.yaml", "{{- if .Values.a }}\na: {{ .b }}\n");
    await write("kustomization.yaml", "resources: [a.yaml]\n");
    const found = await readManifests([folder]);
    expect(found.problems).toEqual([]);
    expect(namesOf(found)).toEqual(["acme"]);
    expect(found.notes).toEqual([
      expect.stringContaining("has a Helm chart, whose templates are not rendered"),
      expect.stringContaining("--render"),
    ]);
  });

  it("is refused where it is no UTF-8", async () => {
    await write("a.yaml", Buffer.concat([Buffer.from(`${TENANT}# `), Buffer.from([0xc0, 0x80])]));
    const { problems } = await readManifests([folder]);
    expect(problems).toEqual([{ file: join(folder, "a.yaml"), message: "it is not UTF-8" }]);
  });
});

const LENGTH = 256 * 1024;
const repeated = (text: string) => text.repeat(LENGTH / text.length);
const numbered = (text: string) => {
  const parts: string[] = [];
  for (let length = 0; length < LENGTH; length += parts.at(-1)?.length ?? 0) {
    parts.push(text.replaceAll("N", String(parts.length)));
  }
  return parts.join("");
};

it.each([
  ["a flow map", () => `{${numbered("kN: 1,")}}`],
  ["aliases", () => `- &a x\n${repeated("- *a\n")}`],
  ["anchors", () => numbered("- &aN x\n- *aN\n")],
  ["merges of a large map", () => `a: &a {${numbered("kN: 1,").slice(0, LENGTH / 2)}\n${numbered("cN: { <<: *a }\n")}`],
  ["documents", () => repeated("---\na: 1\n")],
  ["errors", () => repeated("---\na: [\n")],
  ["brackets", () => repeated("[")],
  ["a text without an end", () => `"${repeated("a\n")}`],
  ["comments", () => repeated("# a\r\n")],
  ["dashes", () => repeated("--- ")],
])(
  "a manifest of 256 KiB of %s is read or refused, in time that grows with its length alone",
  (_, text) => {
    const started = process.threadCpuUsage().user;
    parseManifests(text(), "large.yaml", { strict: false });
    // Reading takes a tenth of it; what a parser does for each pair of keys takes more.
    expect(process.threadCpuUsage().user - started).toBeLessThan(5_000_000);
  },
  30_000,
);

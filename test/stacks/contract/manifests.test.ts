import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { TerminalError } from "../../../providers/errors";
import { readManifests, requireManifests } from "../../../stacks/contract/manifests";
import { parseManifests } from "../../../stacks/contract/parse-manifests";
import { testDirectory } from "../../directories";

const TENANT = "apiVersion: multitenancy.codereliant.io/v1\nkind: Tenant\nmetadata: { name: acme }\n";
const parse = (text: string) => parseManifests(text, "objects.yaml", { strict: true });
const nameOf = ({ manifest }: { manifest: unknown }) => (manifest as { metadata?: { name: string } }).metadata?.name;
const namesOf = ({ objects }: { objects: readonly { manifest: unknown }[] }) => objects.map(nameOf);

describe("a manifest file", () => {
  it("may hold many documents, empty ones and lists among them", () => {
    const list = `apiVersion: v1\nkind: List\nitems:\n- ${TENANT.trim().replaceAll("\n", "\n  ")}\n`;
    const found = parse(`---\n---\n${TENANT}---\n# nothing\n---\n${list}`);
    expect(found.problems).toEqual([]);
    expect(namesOf(found)).toEqual(["acme", "acme"]);
  });

  it("may be JSON", () => {
    const found = parse('{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}');
    expect(namesOf(found)).toEqual(["a"]);
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

  it("may be JSON with tabs", () => {
    expect(namesOf(parse('{\n\t"apiVersion": "v1",\n\t"kind": "A",\n\t"metadata": {"name": "a"}\n}'))).toEqual(["a"]);
  });

  it.each([
    ["List", TENANT],
    ["TenantList", TENANT],
    ["TenantList", "metadata: { name: acme }\n"],
  ])("may hold a %s of %j", (kind, item) => {
    const items = item.trim().replaceAll("\n", "\n    ");
    const found = parse(
      `apiVersion: multitenancy.codereliant.io/v1\nkind: ${kind}\nmetadata: { resourceVersion: "1" }\nitems:\n  - ${items}\n`,
    );
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
    expect(problems).toEqual([{ file: "objects.yaml", message: expect.stringContaining(message) }]);
    expect(problems[0]?.message).not.toMatch(/nothing|just|Tenant/);
  });

  it("with an error keeps the documents before and after it", () => {
    const found = parse(`${TENANT}---\na: [\n---\n${TENANT.replace("acme", "after")}`);
    expect(namesOf(found)).toEqual(["acme", "after"]);
    expect(found.problems).toEqual([
      { file: "objects.yaml", message: expect.stringMatching(/^document 2: line \d: flow sequence/) },
    ]);
  });

  it("reports one bad document and keeps the good ones", () => {
    const found = parse(`${TENANT}---\nwords\n`);
    expect(namesOf(found)).toEqual(["acme"]);
    expect(found.problems[0]?.message).toBe("document 2: is not a Kubernetes object");
  });

  it("cannot grow without bounds by its aliases", () => {
    const levels = Array.from({ length: 9 }, (_, n) => `l${n + 1}: &l${n + 1} [${`*l${n},`.repeat(9)}]`);
    const found = parse(`l0: &l0 [lol]\n${levels.join("\n")}\n`);
    expect(found.problems).toEqual([
      { file: "objects.yaml", message: expect.stringContaining("more than 2000000 values behind its aliases") },
    ]);
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
    const found = parse(
      `apiVersion: v1\nkind: Namespace\n${text.startsWith("metadata") ? "" : "metadata: { name: a }\n"}${text}\n`,
    );
    expect(found.objects).toEqual([]);
    expect(found.problems).toEqual([
      {
        file: "objects.yaml",
        message: expect.stringMatching(/nested deeper than 200 levels, or holds itself|nesting exceeded maxDepth/),
      },
    ]);
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
    expect(parse(`${TENANT}${text}\n`).problems).toEqual([
      { file: "objects.yaml", message: expect.stringContaining(message) },
    ]);
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
    expect(parseManifests(text, "a.json", { strict: false }).problems).toEqual([
      { file: "a.json", message: expect.stringContaining(message) },
    ]);
  });

  it("is a list where it has items, whatever its kind says", () => {
    const found = parse(`apiVersion: v1\nkind: ConfigMap\nitems:\n- ${TENANT.trim().replaceAll("\n", "\n  ")}\n`);
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
  beforeEach(async () => {
    folder = testDirectory();
  });

  it("is read with all below it that kubectl reads, hidden or not", async () => {
    for (const path of ["a", "a/b", ".git", ".h", "node_modules"]) await mkdir(join(folder, path));
    const hidden = [".zz.yaml", ".h/four.yaml", "node_modules/five.yaml"];
    for (const file of ["one.yaml", "a/b/two.yml", "a/three.json", ".git/no.yaml", ...hidden, "no.txt", "NO.YAML"]) {
      await writeFile(join(folder, file), TENANT.replace("acme", file.replace(/\W/g, "-")));
    }
    await writeFile(join(folder, "values.yaml"), "replicas: 3\n");
    const found = await readManifests([folder]);
    expect(found.problems).toEqual([]);
    expect(found.notes).toEqual([`${join(folder, "NO.YAML")} is not read: kubectl reads .yaml, .yml and .json`]);
    expect(found.objects.map(({ file }) => file.slice(folder.length + 1))).toEqual([
      ".h/four.yaml",
      ".zz.yaml",
      "a/b/two.yml",
      "a/three.json",
      "node_modules/five.yaml",
      "one.yaml",
    ]);
  });

  it("may have links within it, but none that lead to another file of the machine", async () => {
    await mkdir(join(folder, "sub"), { recursive: true });
    await writeFile(join(folder, "sub", "real.yaml"), TENANT);
    await symlink(join("sub", "real.yaml"), join(folder, "inside.yaml"));
    await symlink("/proc/self/environ", join(folder, "outside.yaml"));

    const found = await readManifests([folder]);

    expect(namesOf(found)).toEqual(["acme", "acme"]);
    expect(found.problems).toEqual([
      { file: join(folder, "outside.yaml"), message: "it is a link to a file outside of the folder" },
    ]);
  });

  it("may be no link itself that leads elsewhere, nor may a file, whatever it holds", async () => {
    await mkdir(join(folder, "repository"));
    await mkdir(join(folder, "elsewhere"));
    await writeFile(join(folder, "elsewhere", "secret.yaml"), "password: [hidden\n");
    await symlink("../elsewhere", join(folder, "repository", "manifests"));
    await symlink("../elsewhere/secret.yaml", join(folder, "repository", "one.yaml"));
    const paths = ["manifests", "one.yaml", "manifests/secret.yaml"].map((name) => join(folder, "repository", name));

    const found = await readManifests(paths);

    expect(found.objects).toEqual([]);
    expect(found.problems).toEqual(
      paths.map((file) => ({ file, message: "it is a link to a file outside of the folder" })),
    );
  });

  it("may be no link into what git keeps, such as a checkout's token", async () => {
    await mkdir(join(folder, ".git"));
    await writeFile(join(folder, ".git", "config"), "extraheader: [secret");
    await symlink(".git/config", join(folder, "one.yaml"));
    await mkdir(join(folder, "manifests"));
    await symlink("../.git/config", join(folder, "manifests", "two.yaml"));

    const found = await readManifests(["one.yaml", "manifests"].map((name) => join(folder, name)));

    expect(found.objects).toEqual([]);
    expect(found.problems.map(({ message }) => message)).toEqual([
      "it is a link into .git",
      "it is a link to a file outside of the folder",
    ]);
  });

  it("may be a link within its repository", async () => {
    for (const name of [".git", "shared", "overlays"]) await mkdir(join(folder, name));
    await writeFile(join(folder, "shared", "tenant.yaml"), TENANT);
    await symlink("../shared", join(folder, "overlays", "prod"));
    expect(namesOf(await readManifests([join(folder, "overlays", "prod")]))).toEqual(["acme"]);
  });

  it("does not hide one file's problem behind another's", async () => {
    await writeFile(join(folder, "bad.yaml"), "a: [");
    await writeFile(join(folder, "good.yaml"), TENANT);
    const found = await readManifests([folder, join(folder, "missing.yaml")]);
    expect(namesOf(found)).toEqual(["acme"]);
    expect(found.problems.map(({ file }) => file)).toEqual([join(folder, "bad.yaml"), join(folder, "missing.yaml")]);
  });

  it("takes a path that does not exist for empty when it may be gone", async () => {
    expect(await readManifests([join(folder, "missing")], true)).toEqual({ objects: [], problems: [], notes: [] });
  });

  it("is not read further than a manifest is long, also where no size is known before", async () => {
    await writeFile(join(folder, "huge.yaml"), `# ${"x".repeat(5 * 1024 * 1024)}\n${TENANT}`);
    await writeFile(join(folder, "large.yaml"), `# ${"x".repeat(1024 * 1024)}\n${TENANT}`);
    const found = await readManifests([folder, "/dev/zero"]);
    expect(namesOf(found)).toEqual(["acme"]);
    expect(found.problems).toEqual(
      [join(folder, "huge.yaml"), "/dev/zero"].map((file) => ({
        file,
        message: "it has more than the 5242880 bytes that a manifest may have",
      })),
    );
  });

  it("is all or nothing where none may be missing", async () => {
    await writeFile(join(folder, "good.yaml"), TENANT);
    expect((await requireManifests([folder])).map(nameOf)).toEqual(["acme"]);
    await writeFile(join(folder, "bad.yaml"), "a: [");
    await expect(requireManifests([folder])).rejects.toThrow(TerminalError);
    await expect(requireManifests([folder])).rejects.toThrow("bad.yaml: ");
  });

  it("that holds nothing is refused where something is needed", async () => {
    await expect(requireManifests([folder])).rejects.toThrow(`there is no Kubernetes object in ${folder}`);
  });

  it("has charts, whose templates are manifests where kubectl would read them, and kustomizations: both are told", async () => {
    for (const path of ["chart", "chart/templates"]) await mkdir(join(folder, path));
    await writeFile(join(folder, "chart", "Chart.yaml"), "name: chart\n");
    await writeFile(join(folder, "chart", "templates", "plain.yaml"), TENANT);
    await writeFile(join(folder, "chart", "templates", "template.yaml"), "{{- if .Values.a }}\na: {{ .b }}\n");
    await writeFile(join(folder, "kustomization.yaml"), "resources: [a.yaml]\n");
    const found = await readManifests([folder]);
    expect(found.problems).toEqual([]);
    expect(namesOf(found)).toEqual(["acme"]);
    expect(found.notes).toEqual([
      expect.stringContaining("has a Helm chart, whose templates are not rendered"),
      expect.stringContaining("--render"),
    ]);
  });

  it("is refused where it is no UTF-8", async () => {
    await writeFile(join(folder, "a.yaml"), Buffer.concat([Buffer.from(`${TENANT}# `), Buffer.from([0xc0, 0x80])]));
    expect((await readManifests([folder])).problems).toEqual([
      { file: join(folder, "a.yaml"), message: "it is not UTF-8" },
    ]);
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

import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { TerminalError } from "../../../providers/errors";
import { readManifests, requireManifests, selectFiles } from "../../../stacks/contract/manifests";
import { parseManifests } from "../../../stacks/contract/parse-manifests";

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
    ["bad syntax", "a: [1, 2", "line 2: unexpected end"],
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
      { file: "objects.yaml", message: expect.stringMatching(/^document 2: line \d: unexpected end/) },
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
    expect(found.problems[0]?.message).toBe("line 4: unknown tag");
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
    folder = await mkdtemp(join(tmpdir(), "kindstack-manifests-"));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  it("is read with all below it, without what is hidden or no manifest", async () => {
    for (const path of ["a", "a/b", ".git", "node_modules"]) await mkdir(join(folder, path));
    for (const file of ["one.yaml", "a/b/two.yml", "a/three.json", ".git/no.yaml", "node_modules/no.yaml", "no.txt"]) {
      await writeFile(join(folder, file), TENANT.replace("acme", file.replace(/\W/g, "-")));
    }
    await writeFile(join(folder, "values.yaml"), "replicas: 3\n");
    const found = await readManifests([folder]);
    expect(found.problems).toEqual([]);
    expect(found.objects.map(({ file }) => file.slice(folder.length + 1))).toEqual([
      "a/b/two.yml",
      "a/three.json",
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

  it("has charts, whose templates are no manifests, and kustomizations, which no one runs: both are told", () => {
    const files = [
      "a.yaml",
      "chart/Chart.yaml",
      "chart/templates/tenant.yaml",
      "chart/crds/a.yaml",
      "kustomization.yaml",
    ];
    expect(selectFiles(files, "manifests")).toEqual({
      files: ["a.yaml", "chart/Chart.yaml", "chart/crds/a.yaml", "kustomization.yaml"],
      notes: [expect.stringContaining("manifests has a Helm chart"), expect.stringContaining("--render")],
    });
  });
});

const MEBIBYTE = 1024 * 1024;
const repeated = (text: string) => text.repeat(MEBIBYTE / text.length);
const numbered = (text: string) => {
  const parts: string[] = [];
  for (let length = 0; length < MEBIBYTE; length += parts.at(-1)?.length ?? 0) {
    parts.push(text.replaceAll("N", String(parts.length)));
  }
  return parts.join("");
};

describe("a manifest of 1 MiB", () => {
  it.each([
    ["a flow map", () => `{${numbered("kN: 1,")}}`],
    ["aliases", () => `- &a x\n${repeated("- *a\n")}`],
    ["anchors", () => numbered("- &aN x\n- *aN\n")],
    [
      "merges of a large map",
      () => `a: &a {${numbered("kN: 1,").slice(0, MEBIBYTE / 2)}\n${numbered("cN: { <<: *a }\n")}`,
    ],
    ["documents", () => repeated("---\na: 1\n")],
    ["errors", () => repeated("---\na: [\n")],
    ["brackets", () => repeated("[")],
    ["a text without an end", () => `"${repeated("a\n")}`],
    ["comments", () => repeated("# a\r\n")],
    ["dashes", () => repeated("--- ")],
  ])(
    "of %s is read or refused, in time that grows with its length alone",
    (_, text) => {
      const started = process.threadCpuUsage().user;
      parseManifests(text(), "large.yaml", { strict: false });
      // Reading takes a fifth of it; what a parser does for each pair of keys takes minutes.
      expect(process.threadCpuUsage().user - started).toBeLessThan(5_000_000);
    },
    30_000,
  );
});

import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { TerminalError } from "../../../providers/errors";
import { parseManifests, readManifests, requireManifests } from "../../../stacks/contract/manifests";

const TENANT = "apiVersion: multitenancy.codereliant.io/v1\nkind: Tenant\nmetadata: { name: acme }\n";
const parse = (text: string) => parseManifests(text, "objects.yaml", { strict: true });
const namesOf = ({ objects }: { objects: { manifest: { metadata: { name: string } } }[] }) =>
  objects.map(({ manifest }) => manifest.metadata.name);

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
    ["bad syntax", "a: [1, 2", "Flow sequence in block collection"],
    ["a duplicate key", `${TENANT}kind: Tenant\n`, "Map keys must be unique"],
    ["text", "just words", "is not a Kubernetes object"],
    ["a list", "- a\n- b", "is not a Kubernetes object"],
    ["no name", "apiVersion: v1\nkind: Namespace\nmetadata: {}", "metadata.name: must be given"],
    ["no metadata", "apiVersion: v1\nkind: Namespace", "metadata: must be given"],
    ["a number for a name", "apiVersion: v1\nkind: Namespace\nmetadata: { name: 1 }", "metadata.name: must be string"],
    [
      "a label that is no text",
      "apiVersion: v1\nkind: Namespace\nmetadata: { name: a, labels: { b: yes } }",
      "metadata.labels.b: must be string",
    ],
    ["an alias of nothing", "a: *nothing", "Unresolved alias"],
  ])("with %s is reported with its name and what is wrong", (_, text, message) => {
    const { objects, problems } = parse(text);
    expect(objects).toEqual([]);
    expect(problems).toEqual([{ file: "objects.yaml", message: expect.stringContaining(message) }]);
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
      { file: "objects.yaml", message: expect.stringContaining("Excessive alias count") },
    ]);
  });

  it.each([
    ["a list that holds itself", "spec: &a [*a]"],
    ["a list that holds itself twice", "spec: &a [*a, *a]"],
    ["a map that holds itself further down", "spec: &a { b: { c: *a } }"],
    ["a label that holds itself", "metadata: &a { name: a, labels: *a }"],
    ["300 levels", `spec: ${"[".repeat(300)}${"]".repeat(300)}`],
    [
      "100 levels, 100 times deeper by aliases",
      `a0: &a0 {}\n${Array.from({ length: 99 }, (_, n) => `a${n + 1}: &a${n + 1} { b: { c: *a${n} } }`).join("\n")}`,
    ],
  ])("cannot hold %s", (_, text) => {
    const found = parse(
      `apiVersion: v1\nkind: Namespace\n${text.startsWith("metadata") ? "" : "metadata: { name: a }\n"}${text}\n`,
    );
    expect(found.objects).toEqual([]);
    expect(found.problems).toEqual([
      { file: "objects.yaml", message: expect.stringMatching(/nested deeper than 200 levels, or holds itself|alias/) },
    ]);
  });

  it("may be nested as deep as any object is", () => {
    expect(parse(`${TENANT}spec: ${"[".repeat(150)}${"]".repeat(150)}\n`).objects).toHaveLength(1);
  });

  it("cannot hold tags that mean something else than their text", () => {
    const found = parse(`${TENANT}spec: !!js/function "() => 1"\n`);
    expect(found.objects).toEqual([]);
    expect(found.problems[0]?.message).toContain("Unresolved tag");
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

  it("does not hide one file's problem behind another's", async () => {
    await writeFile(join(folder, "bad.yaml"), "a: [");
    await writeFile(join(folder, "good.yaml"), TENANT);
    const found = await readManifests([folder, join(folder, "missing.yaml")]);
    expect(namesOf(found)).toEqual(["acme"]);
    expect(found.problems.map(({ file }) => file)).toEqual([join(folder, "bad.yaml"), join(folder, "missing.yaml")]);
  });

  it("takes a path that does not exist for empty when it may be gone", async () => {
    expect(await readManifests([join(folder, "missing")], true)).toEqual({ objects: [], problems: [] });
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
    expect((await requireManifests([folder])).map(({ manifest }) => manifest.metadata.name)).toEqual(["acme"]);
    await writeFile(join(folder, "bad.yaml"), "a: [");
    await expect(requireManifests([folder])).rejects.toThrow(TerminalError);
    await expect(requireManifests([folder])).rejects.toThrow("bad.yaml: ");
  });

  it("that holds nothing is refused where something is needed", async () => {
    await expect(requireManifests([folder])).rejects.toThrow(`there is no Kubernetes object in ${folder}`);
  });
});

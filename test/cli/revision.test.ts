import { execFileSync } from "node:child_process";
import { cp, mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { Manifest } from "../../providers/kubernetes/client";
import { readManifestsAt, renderManifests, renderManifestsAt } from "../../src/cli/revision";
import { testDirectory, useDirectory } from "../directories";

/** A repository with one commit, of which each test has a copy. */
const template = useDirectory();
let repository: string;
const git = (...words: string[]) =>
  execFileSync("git", ["-C", repository, "-c", "user.name=a", "-c", "user.email=a@b.c", ...words], {
    encoding: "utf8",
  });
const write = (path: string, name: string) =>
  writeFile(join(repository, path), `apiVersion: v1\nkind: Namespace\nmetadata: { name: ${name} }\n`);
const commit = (message: string) => {
  git("add", "-A");
  git("commit", "-qm", message);
};
const namesAt = async (revision: string, ...paths: string[]) =>
  (
    await readManifestsAt(
      revision,
      paths.map((path) => join(repository, path)),
    )
  ).objects
    .map(({ manifest }) => (manifest as Manifest).metadata.name)
    .sort();

beforeAll(async () => {
  repository = template;
  git("init", "-q", "-b", "main");
  await mkdir(join(repository, "manifests/sub folder"), { recursive: true });
  await write("manifests/a.yaml", "a");
  await write("manifests/sub folder/b.yaml", "b");
  await write("other.yaml", "other");
  commit("first");
});
beforeEach(async () => {
  repository = testDirectory();
  await cp(template, repository, { recursive: true });
});

const never = new AbortController().signal;

describe("the manifests of a git revision", () => {
  it("are those of the same files and folders, whatever has become of them", async () => {
    await rm(join(repository, "manifests"), { recursive: true });
    await rm(join(repository, "other.yaml"));
    commit("second");
    expect(await namesAt("HEAD^", "manifests")).toEqual(["a", "b"]);
    expect(await namesAt("HEAD^", "other.yaml")).toEqual(["other"]);
    expect(await namesAt("HEAD^", ".")).toEqual(["a", "b", "other"]);
    expect(await namesAt("HEAD", ".")).toEqual([]);
  });

  it("are called as the files here are, so that both can be compared", async () => {
    const folder = join(repository, "manifests");
    const { objects } = await readManifestsAt("HEAD", [folder]);
    expect(objects.map(({ file }) => file)).toEqual([join(folder, "a.yaml"), join(folder, "sub folder/b.yaml")]);
  });

  it("are those before the branch began, without what others have added since", async () => {
    git("checkout", "-qb", "feature");
    git("checkout", "-q", "main");
    await write("manifests/c.yaml", "c");
    commit("others' work");
    git("checkout", "-q", "feature");
    expect(await namesAt("main", "manifests")).toEqual(["a", "b"]);
  });

  it("are found through a symbolic link as well", async () => {
    const link = `${repository}-link`;
    await symlink(repository, link);
    const { objects } = await readManifestsAt("HEAD", [join(link, "manifests")]);
    await rm(link);
    expect(objects).toHaveLength(2);
  });

  it("do not change with a file's name", async () => {
    await rename(join(repository, "manifests/a.yaml"), join(repository, "manifests/z.yaml"));
    expect(await namesAt("HEAD", "manifests")).toEqual(["a", "b"]);
  });

  it.each(["nonsense", "--output=/tmp/x", "HEAD:other.yaml"])(
    "cannot be had of what is no revision: %s",
    async (revision) => {
      await expect(namesAt(revision, "manifests")).rejects.toThrow(`--prune-against: there is no commit ${revision} `);
    },
  );

  it("cannot be had of a path that was not there: deletions may be unseen", async () => {
    git("mv", "manifests", "deploy");
    git("rm", "-qf", "deploy/a.yaml");
    const moved = await readManifestsAt("HEAD", [join(repository, "deploy")]);
    expect(moved).toMatchObject({ objects: [], unseen: [expect.stringMatching(/deploy is not in HEAD, so nothing/)] });
    expect((await readManifestsAt("HEAD", [join(repository, "manifests")])).unseen).toEqual([]);
  });

  it("are not read through a link, nor where they cannot be parsed, which is told", async () => {
    await symlink("manifests", join(repository, "link"));
    await writeFile(join(repository, "manifests/bad.yaml"), "a: [secret words");
    commit("second");
    expect((await readManifestsAt("HEAD", [join(repository, "link")])).unseen).toHaveLength(1);
    const { unseen } = await readManifestsAt("HEAD", [join(repository, "manifests")]);
    expect(unseen).toEqual([expect.stringMatching(/bad\.yaml at HEAD: line \d: /)]);
    expect(unseen.join()).not.toContain("secret");
  });

  it("are asked for with the fetch depth where a shallow clone lacks them", async () => {
    await write("manifests/c.yaml", "c");
    commit("second");
    git("branch", "feature", "HEAD^");
    const clone = `${repository}-clone`;
    execFileSync("git", ["clone", "-q", "--depth=1", "--no-single-branch", `file://${repository}`, clone]);
    const lacking = readManifestsAt("HEAD^", [join(clone, "manifests")]);
    await expect(lacking).rejects.toThrow(/^--prune-against: .*shallow and lacks HEAD\^.*fetch depth of 0/s);
    await expect(readManifestsAt("origin/feature", [join(clone, "manifests")])).rejects.toThrow(/fetch --unshallow/);
    await rm(clone, { recursive: true });
  });
});

describe("what a command prints", () => {
  const RENDER = "for file in *.yaml; do cat $file; echo ---; done";
  const names = (manifests: { objects: readonly { manifest: unknown }[] }) =>
    manifests.objects.map(({ manifest }) => (manifest as Manifest).metadata.name);
  beforeEach(() => {
    vi.spyOn(process, "cwd").mockReturnValue(join(repository, "manifests"));
    return () => vi.restoreAllMocks();
  });

  it("is made here of what is not committed yet, and of clean files there, in the same folder", async () => {
    await rename(join(repository, "manifests/a.yaml"), join(repository, "manifests/uncommitted.yaml"));
    await write("manifests/uncommitted.yaml", "new");
    const status = git("status", "--porcelain");

    expect(names(await renderManifests(RENDER, never))).toEqual(["new"]);
    const there = await renderManifestsAt(RENDER, "main", never);

    expect(names(there)).toEqual(["a"]);
    expect(there.unseen).toEqual([]);
    expect(git("status", "--porcelain")).toBe(status);
    expect(git("worktree", "list").trim().split("\n")).toHaveLength(1);
  });

  it("is an error where the command fails here, and hides deletions where it fails there", async () => {
    await write("manifests/new.yaml", "new");
    await expect(renderManifests("echo why >&2; exit 3", never)).rejects.toThrow(/--render: `.*` failed with 3: why/);
    const there = await renderManifestsAt("cat new.yaml", "main", never);
    expect(there).toMatchObject({
      objects: [],
      unseen: [expect.stringMatching(/nothing can be seen as deleted: at main/)],
    });
  });
});

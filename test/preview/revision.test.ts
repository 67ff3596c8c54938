import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readManifestsAt } from "../../src/preview/revision";

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
    .map(({ manifest }) => manifest.metadata.name)
    .sort();

beforeEach(async () => {
  repository = await mkdtemp(join(tmpdir(), "kindstack-revision-"));
  git("init", "-q", "-b", "main");
  await mkdir(join(repository, "manifests/sub folder"), { recursive: true });
  await write("manifests/a.yaml", "a");
  await write("manifests/sub folder/b.yaml", "b");
  await write("other.yaml", "other");
  commit("first");
});
afterEach(() => rm(repository, { recursive: true, force: true }));

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
      await expect(namesAt(revision, "manifests")).rejects.toThrow(/^git rev-parse: /);
    },
  );
});

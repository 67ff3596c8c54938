import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { parse } from "yaml";
import { readManifestsAt, renderManifests, renderManifestsAt } from "../../src/cli/revision";
import { selectCandidates } from "../../src/preview/preview";
import { eventually } from "../../src/testing/eventually";
import { readManifests } from "../../stacks/contract/manifests";
import { kinds } from "../../stacks/kinds/index";
import { testDirectory } from "../directories";

/* Folders, pipes and repositories as teams have them. */

let root: string;
const never = new AbortController().signal;
beforeEach(() => {
  root = testDirectory();
  for (const name of ["GIT_AUTHOR", "GIT_COMMITTER"]) {
    vi.stubEnv(`${name}_NAME`, "somebody");
    vi.stubEnv(`${name}_EMAIL`, "somebody@example.com");
  }
  return () => {
    vi.unstubAllEnvs();
    vi.restoreAllMocks();
  };
});

const write = (file: string, content: string | Buffer) => {
  mkdirSync(dirname(join(root, file)), { recursive: true });
  writeFileSync(join(root, file), content);
};
const git = (...words: string[]) => execFileSync("git", ["-C", root, ...words], { encoding: "utf8" });
const commit = (message: string) => {
  git("add", "-A");
  git("commit", "-qm", message);
};
const tenant = (name: string) =>
  `apiVersion: multitenancy.codereliant.io/v1\nkind: Tenant\nmetadata:\n  name: ${name}\nspec:\n  adminEmail: a@example.com\n  namespaces: []\n`;
/** Commits the tenants a and b in this folder. */
const commitTwo = (folder: string) => {
  for (const name of ["a", "b"]) write(`${folder}/${name}.yaml`, tenant(name));
  commit("first");
};

/**
 * What a preview is asked of a folder: the names, problems and what is passed over. Those that are removed have a minus, those
 * that may be removed a question mark.
 */
async function asked(paths: string[], revision?: string) {
  const before = revision === undefined ? undefined : await readManifestsAt(revision, paths);
  const {
    candidates,
    problems = [],
    ignored,
  } = selectCandidates(kinds, "default", await readManifests(paths, revision !== undefined), before);
  return {
    names: candidates
      .map(({ manifest, removed, doubt }) => `${removed ? (doubt ? "?" : "-") : ""}${manifest.metadata.name}`)
      .sort(),
    problems: problems.map(({ message }) => message),
    ignored,
    unseen: before?.unseen ?? [],
  };
}

describe("a folder", () => {
  it("of what `kubectl get -o yaml` and `-o json` print", async () => {
    const item = tenant("a").trimEnd().replaceAll("\n", "\n  ");
    write("list.yaml", `apiVersion: v1\nitems:\n- ${item}\nkind: List\nmetadata:\n  resourceVersion: ""\n`);
    const metadata = { name: "b", uid: "u", resourceVersion: "1", managedFields: [{ manager: "m" }] };
    const live = { ...parse(tenant("b")), metadata, status: { conditions: [] } };
    const list = { apiVersion: "v1", kind: "List", metadata: { resourceVersion: "" }, items: [live] };
    write("list.json", JSON.stringify(list, null, 4));
    expect(await asked([root])).toEqual({ names: ["a", "b"], problems: [], ignored: 0, unseen: [] });
  });

  it("of what `helm template` prints: sources, empty documents, hooks, tests", async () => {
    write(
      "out.yaml",
      `---\n# Source: tenants/templates/a.yaml\n${tenant("a")}---\n# Source: tenants/templates/empty.yaml\n---\n# Source: tenants/templates/job.yaml\napiVersion: batch/v1\nkind: Job\nmetadata:\n  generateName: migrate-\n  annotations:\n    "helm.sh/hook": pre-install\n---\n\n---\n# Source: b\n${tenant("b")}...\n`,
    );
    expect(await asked([root])).toEqual({ names: ["a", "b"], problems: [], ignored: 1, unseen: [] });
  });

  it("of JSON lines, as `jq -c` prints them", async () => {
    const lines = ["a", "b"].map((name) => `${JSON.stringify(parse(tenant(name)))}\n`);
    write("out.json", lines.join(""));
    expect(await asked([root])).toEqual({ names: ["a", "b"], problems: [], ignored: 0, unseen: [] });
  });

  it("with a file as Windows PowerShell writes it is read, or refused by its name", async () => {
    write("utf16.yaml", Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(tenant("a"), "utf16le")]));
    const { names, problems } = await asked([root]);
    expect(names.length + problems.length).toBe(1);
    expect(problems.join()).toMatch(/^$|UTF-16|UTF-8/);
  });

  it("that is named twice, or with a file of it, is read once", async () => {
    write("a.yaml", tenant("a"));
    const once = { names: ["a"], problems: [], ignored: 0, unseen: [] };
    expect(await asked([root, join(root, "a.yaml"), `${root}/`])).toEqual(once);
  });

  it("with anchors, merges and quoted numbers, as people write them", async () => {
    write(
      "a.yaml",
      `x-common: &common\n  adminEmail: a@example.com\napiVersion: multitenancy.codereliant.io/v1\nkind: Tenant\nmetadata: {name: "007"}\nspec:\n  <<: *common\n  namespaces: &n [one]\n`,
    );
    expect((await asked([root])).names).toEqual(["007"]);
  });
});

describe("a repository", () => {
  beforeEach(() => {
    git("init", "-q", "-b", "main");
  });

  it("with blanks, accents and quotes in its paths", async () => {
    commitTwo('team "é"/my tenants');
    rmSync(join(root, 'team "é"/my tenants/b.yaml'));
    expect(await asked([join(root, 'team "é"/my tenants')], "main")).toMatchObject({ names: ["-b", "a"], unseen: [] });
  });

  it("in a hook, where git names the repository by variables", async () => {
    commitTwo("tenants");
    rmSync(join(root, "tenants/b.yaml"));
    vi.stubEnv("GIT_DIR", join(root, ".git"));
    vi.stubEnv("GIT_INDEX_FILE", join(root, ".git/index"));
    expect(await asked([join(root, "tenants")], "main")).toMatchObject({ names: ["-b", "a"], unseen: [] });
    vi.spyOn(process, "cwd").mockReturnValue(join(root, "tenants"));
    const before = await renderManifestsAt("cat b.yaml", "main", never);
    expect(before).toMatchObject({ unseen: [], objects: [{}] });
  });

  it("with an annotated tag to compare with, and a branch of the same name as a folder", async () => {
    commitTwo("main");
    git("tag", "-a", "v1", "-m", "v1");
    rmSync(join(root, "main/b.yaml"));
    commit("second");
    expect(await asked([join(root, "main")], "v1")).toMatchObject({ names: ["-b", "a"] });
    expect(await asked([join(root, "main")], "main")).toMatchObject({ names: ["a"] });
  });

  it.each([
    ["has lost half of its type", (text: string) => text.replace(/^apiVersion.*\n/, "")],
    ["has lost its name", (text: string) => text.replace("name: b", "names: b")],
    ["has a misspelt kind", (text: string) => text.replace("kind: Tenant", "kind: Tenants")],
    ["has a misspelt group", (text: string) => text.replace("codereliant.io", "codereliant.com")],
    ["is in a file that cannot be read", (text: string) => `${text}a: [`],
  ])("whose object %s: it is not deleted", async (_, change) => {
    commitTwo(".");
    write("b.yaml", change(tenant("b")));
    expect((await asked([root], "main")).names).toEqual(["?b", "a"]);
  });

  it("whose files have other line ends here than in git", async () => {
    write("a.yaml", tenant("a"));
    commit("first");
    write("a.yaml", tenant("a").replaceAll("\n", "\r\n"));
    expect(await asked([root], "main")).toMatchObject({ names: ["a"], problems: [], unseen: [] });
  });

  it("whose file becomes a folder, and whose folder becomes a file", async () => {
    write("one.yaml", `${tenant("a")}---\n${tenant("b")}`);
    write("two/c.yaml", tenant("c"));
    commit("first");
    rmSync(join(root, "one.yaml"));
    rmSync(join(root, "two"), { recursive: true });
    write("one.yaml/a.yaml", tenant("a"));
    write("two", tenant("c"));
    expect(await asked([root], "main")).toMatchObject({ names: ["-b", "-c", "a"] });
    expect(await asked([join(root, "one.yaml"), join(root, "two")], "main")).toMatchObject({ names: ["-b", "a", "c"] });
  });

  it("in a linked work tree", async () => {
    commitTwo("tenants");
    git("worktree", "add", "-q", "linked", "-b", "feature");
    rmSync(join(root, "linked/tenants/b.yaml"));
    expect(await asked([join(root, "linked/tenants")], "main")).toMatchObject({ names: ["-b", "a"], unseen: [] });
  });
});

describe("a command that renders", () => {
  it("may print warnings beside the manifests", async () => {
    const { objects } = await renderManifests(`echo '${tenant("a")}'; echo 'a warning' >&2`, never);
    expect(objects).toHaveLength(1);
  });

  it("ends with the preview, and so does what it has started", async () => {
    const pidFile = join(root, "pid");
    const stop = new AbortController();
    const rendered = renderManifests(`sleep 300 & echo $! > ${pidFile}; wait`, stop.signal).catch((error) => error);
    const pid = await eventually(() => Number(readFileSync(pidFile, "utf8").trim() || fail()));
    stop.abort(new Error("interrupted"));
    expect(await rendered).toMatchObject({ message: "interrupted" });
    await eventually(() => expect(() => process.kill(pid, 0)).toThrow("ESRCH"));
  });
});

function fail(): never {
  throw new Error("it is empty");
}

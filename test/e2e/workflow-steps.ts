import { execFileSync, spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { parse } from "yaml";
import { MAIN } from "./operator";

/*
 * Runs the scripts of workflows as a runner does, each job in a folder and with an environment of its own. What a runner has and
 * this machine may lack is replaced by its effect: actions, the installation of packages, containers, and the command of GitHub.
 */

const ROOT = path.resolve(__dirname, "../..");

export interface JobResult {
  status: number;
  output: string;
}

/** Commands that stand in for those of a runner. @returns their folder, and the file of what is commented */
export function runnerCommands(folder: string): { bin: string; comment: string } {
  const [bin, comment] = [path.join(folder, "bin"), path.join(folder, "comment.md")];
  fs.mkdirSync(bin);
  const command = (name: string, text: string) => fs.writeFileSync(path.join(bin, name), text, { mode: 0o755 });
  command(
    "npm",
    `#!/bin/bash -e
[ "$1" = ci ]
mkdir -p node_modules/.bin
ln -s ${ROOT} node_modules/kindstack
ln -s ${MAIN} node_modules/.bin/kindstack
`,
  );
  // The volumes of a container are the folders that they are of; of the variables, it has those that it is given.
  command(
    "docker",
    `#!/usr/bin/env node
const { spawnSync } = require("node:child_process");
const [run, ...words] = process.argv.slice(2);
if (run !== "run") process.exit(1);
const [volumes, env] = [[], { PATH: process.env.PATH }];
let directory = "/";
const here = (text) => volumes.reduce((all, [from, to]) => (all.startsWith(to) ? from + all.slice(to.length) : all), text);
while (words[0].startsWith("--")) {
  const option = words.shift();
  if (option === "--rm") continue;
  const value = words.shift();
  if (option === "--volume") volumes.push(value.split(":"));
  else if (option === "--env") env[value.split("=")[0]] = value.split("=")[1];
  else if (option === "--workdir") directory = value;
  else if (!["--user", "--cap-drop", "--security-opt", "--network"].includes(option)) process.exit(1);
}
const [image, program, ...rest] = words;
if (image !== "node:24") process.exit(1);
const { status } = spawnSync(program, rest.map(here), { cwd: here(directory), env, stdio: "inherit" });
process.exit(status ?? 1);
`,
  );
  command(
    "gh",
    `#!/bin/bash -e
for word in "$@"; do case "$word" in body=@*) cp "\${word#body=@}" ${comment};; esac; done
`,
  );
  return { bin, comment };
}

interface Step {
  uses?: string;
  with?: Record<string, string>;
  run?: string;
  env?: Record<string, string>;
  if?: string;
}

export interface GithubRun {
  folder: string;
  repository: string;
  bin: string;
  /** What expressions such as `secrets.KINDSTACK_TOKEN` are. */
  values: Record<string, string>;
}

/** Runs a job of a workflow for GitHub. Its artifacts are in the folder of the run. */
export function runGithubJob(
  workflow: string,
  name: string,
  { folder, repository, bin, values }: GithubRun,
): JobResult {
  const job = parse(fs.readFileSync(workflow, "utf8")).jobs[name] as { environment?: string; steps: Step[] };
  const [workspace, temp] = [path.join(folder, name), path.join(folder, `${name}-temp`)];
  for (const one of [workspace, temp]) fs.mkdirSync(one, { recursive: true });
  const known: Record<string, string> = { ...values, "runner.temp": temp };
  const expand = (text: string) =>
    text.replace(/\$\{\{ (.+?) \}\}/g, (_, expression: string) => {
      const isSecret = expression.startsWith("secrets.");
      if (isSecret && job.environment === undefined) throw new Error(`${name} has no ${expression}`);
      return known[expression] ?? fail(`${expression} is not known`);
    });
  const result: JobResult = { status: 0, output: "" };
  for (const step of job.steps) {
    if (result.status !== 0 && !step.if?.includes("!cancelled()")) continue;
    const options = Object.fromEntries(
      Object.entries(step.with ?? {}).map(([key, text]) => [key, expand(String(text))]),
    );
    if (step.run !== undefined) {
      const env = Object.fromEntries(Object.entries(step.env ?? {}).map(([key, text]) => [key, expand(text)]));
      const own = { RUNNER_TEMP: temp, GITHUB_STEP_SUMMARY: path.join(temp, "summary.md"), HOME: temp };
      note(result, script(step.run, workspace, { PATH: pathWith(bin), ...own, ...env }));
    } else if (step.uses?.startsWith("actions/checkout@")) {
      checkout(repository, path.join(workspace, options.path ?? "."), options.ref ?? "main");
    } else if (step.uses?.startsWith("actions/upload-artifact@")) {
      const file = path.resolve(workspace, options.path ?? "");
      fs.cpSync(file, path.join(folder, "artifacts", options.name ?? "", path.basename(file)));
    } else if (step.uses?.startsWith("actions/download-artifact@")) {
      fs.cpSync(path.join(folder, "artifacts", options.name ?? ""), path.resolve(workspace, options.path ?? ""), {
        recursive: true,
      });
    } else if (!step.uses?.startsWith("actions/setup-node@")) throw new Error(`${step.uses} is not known`);
  }
  return result;
}

interface GitlabPart {
  extends?: string;
  environment?: { name: string };
  before_script?: string[];
  script?: string[];
  artifacts?: { paths: string[] };
  needs?: string[];
}

/** Runs a job of a pipeline for GitLab. @param scoped the variables of the environment `kindstack-preview` */
export function runGitlabJob(
  pipeline: string,
  name: string,
  { folder, repository, bin, values }: GithubRun,
  scoped: Record<string, string>,
): JobResult {
  const parts = parse(fs.readFileSync(pipeline, "utf8")) as Record<string, GitlabPart>;
  const own = parts[name] ?? {};
  const job = { ...parts[own.extends ?? ""], ...own };
  const workspace = path.join(folder, name);
  checkout(repository, workspace, "branch");
  const artifacts = (of: string) => path.join(folder, "artifacts", of);
  for (const needed of job.needs ?? []) fs.cpSync(artifacts(needed), workspace, { recursive: true });
  const home = path.join(folder, "home");
  const env = { PATH: pathWith(bin), HOME: home, ...values, ...(job.environment && scoped) };
  const lines = [...(job.before_script ?? []), ...(job.script ?? [])];
  const result: JobResult = { status: 0, output: "" };
  note(result, script(lines.join("\n"), workspace, env, ["-o", "pipefail"]));
  for (const file of job.artifacts?.paths ?? []) {
    if (fs.existsSync(path.join(workspace, file)))
      fs.cpSync(path.join(workspace, file), path.join(artifacts(name), file));
  }
  return result;
}

function checkout(repository: string, into: string, ref: string): void {
  const git = (...words: string[]) => execFileSync("git", ["-C", into, ...words], { stdio: "pipe" });
  execFileSync("git", ["clone", "--quiet", "--no-checkout", repository, into], { stdio: "pipe" });
  git("fetch", "--quiet", "origin", ref);
  git("checkout", "--quiet", "--detach", "FETCH_HEAD");
}

function script(text: string, cwd: string, env: Record<string, string>, options: string[] = []): JobResult {
  const { status, stdout, stderr } = spawnSync("bash", ["-e", ...options, "-c", text], { cwd, env, encoding: "utf8" });
  return { status: status ?? 1, output: `${stdout}${stderr}` };
}

function note(result: JobResult, { status, output }: JobResult): void {
  result.status ||= status;
  result.output += output;
}

/** As this process has them, with its own version of Node.js. */
function pathWith(bin: string): string {
  return [bin, path.dirname(process.execPath), process.env.PATH].join(path.delimiter);
}

function fail(message: string): never {
  throw new Error(message);
}

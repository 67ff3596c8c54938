import { execFile } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { parse, stringify } from "yaml";
import { type EngineReport, reportOf } from "../../src/automation/event-log";
import { resolveBinary } from "../../src/toolchain/resolve";
import { controlPlane } from "../control-plane";

const ROOT = path.resolve(__dirname, "../..");
const UPDATE_TIMEOUT_MS = 120_000;

/** How a command of the Pulumi CLI ended, and what it did to resources. */
export interface PulumiRun {
  exitCode: number;
  /** Resources by operation, without those that stayed the same. */
  changes: EngineReport["changes"];
  output: string;
}

/**
 * The plain Pulumi CLI in the project's root, as the platform team uses it: the language host runs the program, and the
 * SDK's own script serves the dynamic providers.
 */
export class PulumiProject {
  /** Holds the home of the CLI, the stacks' configurations and nothing else. */
  readonly directory = fs.mkdtempSync(path.join(os.tmpdir(), "kindstack-pulumi-"));
  readonly #environment: NodeJS.ProcessEnv;
  readonly #pulumi: string;

  private constructor(pulumi: string, languageHost: string, environment: Record<string, string>) {
    const sdk = path.join(ROOT, "node_modules/@pulumi/pulumi"); // pulumi-resource-pulumi-nodejs lies in it
    this.#pulumi = pulumi;
    this.#environment = {
      ...process.env,
      ...controlPlane().env,
      PATH: [path.dirname(pulumi), path.dirname(languageHost), sdk, process.env.PATH].join(path.delimiter),
      PULUMI_HOME: path.join(this.directory, "home"),
      PULUMI_SKIP_UPDATE_CHECK: "true",
      PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION: "true",
      PULUMI_DEBUG_COMMANDS: "true", // offers --event-log
      ...environment,
    };
  }

  /** @param environment what differs from the cluster's, such as the backend */
  static async open(environment: Record<string, string>): Promise<PulumiProject> {
    const [pulumi, languageHost] = await Promise.all([
      resolveBinary("pulumi"),
      resolveBinary("pulumi-language-nodejs"),
    ]);
    return new PulumiProject(pulumi, languageHost, environment);
  }

  /** `pulumi stack init`. */
  async init(stack: string): Promise<void> {
    const { exitCode, output } = await this.#run(["stack", "init", stack, "--no-select"]);
    fs.rmSync(path.join(ROOT, `Pulumi.${stack}.yaml`), { force: true }); // a test leaves nothing in the project
    if (exitCode !== 0) throw new Error(output);
  }

  /** Sets the keys of a stack's configuration. */
  configure(stack: string, keys: Record<string, unknown>): void {
    const config = Object.fromEntries(Object.entries(keys).map(([key, value]) => [`kindstack:${key}`, value]));
    const file = this.#configFile(stack);
    const before: object = fs.existsSync(file) ? parse(fs.readFileSync(file, "utf8")) : {};
    fs.writeFileSync(file, stringify({ ...before, config })); // the salt of the passphrase stays
  }

  preview(stack: string): Promise<PulumiRun> {
    return this.#update("preview", stack);
  }

  up(stack: string): Promise<PulumiRun> {
    return this.#update("up", stack, "--yes", "--skip-preview");
  }

  refresh(stack: string): Promise<PulumiRun> {
    return this.#update("refresh", stack, "--yes", "--skip-preview");
  }

  destroy(stack: string, ...flags: string[]): Promise<PulumiRun> {
    return this.#update("destroy", stack, "--yes", "--skip-preview", ...flags);
  }

  /** Another command on a stack, such as `["state", "delete", urn]`. */
  run(stack: string, ...words: string[]): Promise<Omit<PulumiRun, "changes">> {
    return this.#run([...words, "--stack", stack]);
  }

  /** The output of a command that {@link run} runs. @throws Error with the output when it fails */
  async outputOf(stack: string, ...words: string[]): Promise<string> {
    const { exitCode, output } = await this.run(stack, ...words);
    if (exitCode !== 0) throw new Error(output);
    return output;
  }

  close(): void {
    fs.rmSync(this.directory, { recursive: true, force: true });
  }

  async #update(command: string, stack: string, ...flags: string[]): Promise<PulumiRun> {
    const events = path.join(this.directory, "events.ndjson");
    fs.rmSync(events, { force: true });
    const words = [
      command,
      "--stack",
      stack,
      "--config-file",
      this.#configFile(stack),
      "--event-log",
      events,
      ...flags,
    ];
    const run = await this.#run(words);
    const log = fs.existsSync(events) ? fs.readFileSync(events, "utf8").split("\n").filter(Boolean) : [];
    return { ...run, changes: reportOf(log.map((line) => JSON.parse(line))).changes };
  }

  #run(words: string[]): Promise<Omit<PulumiRun, "changes">> {
    return new Promise((resolve) => {
      execFile(
        this.#pulumi,
        [...words, "--non-interactive", "--color", "never"],
        { cwd: ROOT, env: this.#environment, timeout: UPDATE_TIMEOUT_MS, maxBuffer: 16 * 1024 * 1024 },
        (error, stdout, stderr) => resolve({ exitCode: error === null ? 0 : 1, output: stdout + stderr }),
      );
    });
  }

  #configFile(stack: string): string {
    return path.join(this.directory, `Pulumi.${stack}.yaml`);
  }
}

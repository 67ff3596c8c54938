import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ProviderHost } from "../../providers/host/server";
import type { DynamicProvider } from "../../providers/provider";
import {
  StackEngine,
  type StackEngineOptions,
  type UpdateOptions,
  type UpdateResult,
} from "../../src/automation/engine";
import type { Pulumi } from "../../src/automation/pulumi";
import { PulumiCli } from "../../src/automation/pulumi-cli";
import { PulumiServer } from "../../src/automation/pulumi-server";
import { openWorkspace, type WorkspaceSettings } from "../../src/automation/workspace";
import { resolveBinary } from "../../src/toolchain/resolve";
import { THING_STUB, Thing, Things } from "./things";

/** What runs Pulumi's commands. */
export type Runner = "server" | "cli";
export const RUNNERS: readonly Runner[] = ["server", "cli"];

/** A process of the server or the CLI. */
export interface Start {
  pid: number;
  args: string;
  environment: string;
}

export interface Checkpoint {
  resources: { urn: string }[];
  pending: { type: string; resource: { urn: string } }[];
}

/**
 * A stack engine with the real server or CLI, in a directory of its own. They stand behind scripts that write down each
 * start and then become them.
 */
export class TestEngine {
  readonly engine: StackEngine;
  #taken = 0;
  readonly #commands: string[][] = [];

  private constructor(
    readonly directory: string,
    readonly settings: WorkspaceSettings,
    readonly options: StackEngineOptions,
    readonly things: Things,
    readonly warnings: string[],
    readonly errors: string[],
  ) {
    this.engine = new StackEngine(options);
    const { pulumi } = options.workspace;
    const run = pulumi.run.bind(pulumi);
    pulumi.run = (command) => {
      this.#commands.push([...command.args]);
      return run(command);
    };
  }

  /**
   * @param backendUrl a folder of its own, unless it is given
   * @param different what differs from a workspace with a passphrase
   * @param providers those that serve other stubs than the things'
   */
  static async open(
    runner: Runner,
    backendUrl?: string,
    different: Partial<WorkspaceSettings> = {},
    // biome-ignore lint/suspicious/noExplicitAny: each provider knows the type of its own properties
    providers: readonly [stub: string, DynamicProvider<any, any>][] = [],
  ): Promise<TestEngine> {
    const directory = await mkdtemp(join(tmpdir(), "kindstack-engine-"));
    const [warnings, errors]: [string[], string[]] = [[], []];
    const things = new Things();
    const host = await ProviderHost.start(new Map([[THING_STUB, things], ...providers]));
    const settings: WorkspaceSettings = {
      pulumi:
        runner === "server"
          ? { server: await recordingScript(directory, "pulumi-server") }
          : { cli: await recordingScript(directory, "pulumi") },
      workDirectory: join(directory, "work"),
      backendUrl: backendUrl ?? `file://${join(directory, "state")}`,
      protection: { passphrase: { value: "the-passphrase" }, keyService: undefined },
      environment: { ...process.env, PSQL_PASSWORD: "psql-secret", PGPASSWORD: "pg-secret" },
      attachment: host.attachment,
      log: { error: (_fields: object, message: string) => void errors.push(message) },
      ...different,
    };
    const log = { warn: (_fields: object, message: string) => void warnings.push(message) };
    const options = { workspace: await openWorkspace(settings), host, timeoutMs: 60_000, log };
    const engine = new TestEngine(directory, settings, options, things, warnings, errors);
    await engine.takeStarts();
    return engine;
  }

  /** Updates a stack to hold these things, `name: value`; the key of a thing is `<stack>/<name>`. */
  up(stack: string, values: Record<string, string>, options: UpdateOptions = {}): Promise<UpdateResult> {
    return this.engine.up(stack, () => this.declare(stack, values), options);
  }

  /** What a program says to have these things. */
  declare(stack: string, values: Record<string, string>): void {
    for (const [name, value] of Object.entries(values)) new Thing(name, { key: `${stack}/${name}`, value });
  }

  /** The commands since this was last asked. */
  takeCommands(): string[][] {
    return this.#commands.splice(0);
  }

  /** The processes that were started since this was last asked. */
  async takeStarts(): Promise<Start[]> {
    const starts = await this.#starts();
    const fresh = starts.slice(this.#taken);
    this.#taken = starts.length;
    return fresh;
  }

  /** The process that was started last. */
  async lastPid(): Promise<number> {
    const pid = (await this.#starts()).at(-1)?.pid;
    if (pid === undefined) throw new Error("no process was started");
    return pid;
  }

  /** The names of the files of the file backend. */
  async backendFiles(): Promise<string[]> {
    const entries = await readdir(join(this.directory, "state"), { recursive: true, withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
  }

  /** A stack's checkpoint in the file backend. */
  async checkpoint(stack: string): Promise<Checkpoint> {
    const path = join(this.directory, "state", ".pulumi", "stacks", "kindstack", `${stack}.json`);
    const { latest } = JSON.parse(await readFile(path, "utf8")).checkpoint;
    return { resources: latest?.resources ?? [], pending: latest?.pending_operations ?? [] };
  }

  async close(): Promise<void> {
    await this.options.workspace.pulumi.close();
    this.options.host.stop();
    await rm(this.directory, { recursive: true, force: true });
  }

  async #starts(): Promise<Start[]> {
    const text = await readFile(join(this.directory, "starts"), "utf8");
    return text
      .split("\f")
      .filter((part) => part !== "")
      .map((part) => {
        const [pid = "", args = "", ...environment] = part.split("\n");
        return { pid: Number(pid), args, environment: environment.join("\n") };
      });
  }
}

/** A runner of the same kind, with a program of the test's in place of the server or the CLI. */
export function openRunner({ settings, options }: TestEngine, runner: Runner, file: string): Pulumi {
  const { scratchDirectory } = options.workspace;
  const common = { file, cwd: settings.workDirectory, environment: settings.environment, log: settings.log };
  return runner === "cli" ? new PulumiCli({ ...common, scratchDirectory }) : new PulumiServer(common);
}

/** How an update ended, to be compared as a whole: `toMatchObject` takes any object for an empty one. */
export function summaryOf({ outcome, changes }: UpdateResult): Pick<UpdateResult, "outcome" | "changes"> {
  return { outcome, changes };
}

/** A script that notes its pid, its arguments and its environment, and then becomes the tool. */
async function recordingScript(directory: string, tool: "pulumi" | "pulumi-server"): Promise<string> {
  const path = await resolveBinary(tool);
  const script = join(directory, tool);
  const record = `{ echo $$; echo "$*"; env; printf '\\f'; } > "$0.$$"; cat "$0.$$" >> '${directory}/starts'; rm "$0.$$"`;
  await writeFile(script, `#!/bin/sh\n${record}\nexec '${path}' "$@"\n`);
  await chmod(script, 0o755);
  return script;
}

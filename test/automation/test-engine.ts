import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { AnyProvider } from "../../providers/host/session";
import { ProviderHost } from "../../providers/host/session";
import { AutomationApiEngine } from "../../src/automation/cli/automation-api-engine";
import type { StackEngine, UpOptions, UpResult } from "../../src/automation/engine";
import { EngineProcesses } from "../../src/automation/engine-processes";
import { GoEngine, type GoEngineOptions } from "../../src/automation/go-engine";
import { PROTOCOL } from "../../src/automation/rpc";
import { type EngineSettings, openEngine } from "../../src/automation/workspace";
import { resolveBinary } from "../../src/toolchain/resolve";
import { ENGINE_VERSION } from "../../src/toolchain/tools";
import { filesUnder } from "../files";
import { recorded, THING_STUB, Thing, Things } from "./things";

/** A process of the engine. */
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
 * A stack engine in a directory of its own. Its process stands behind a script that writes down each start and then becomes
 * it.
 */
export class TestEngine {
  readonly engine: GoEngine;
  #taken = 0;

  private constructor(
    readonly directory: string,
    readonly settings: EngineSettings,
    readonly options: GoEngineOptions,
    readonly things: Things,
    readonly warnings: string[],
    readonly errors: string[],
  ) {
    this.engine = new GoEngine(options);
  }

  /**
   * @param backendUrl a folder of its own, unless it is given
   * @param different what differs from an engine with a passphrase
   * @param providers those that serve other stubs than the things'
   */
  static async open(
    backendUrl?: string,
    different: Partial<EngineSettings> = {},
    providers: readonly [stub: string, AnyProvider][] = [],
  ): Promise<TestEngine> {
    const directory = await mkdtemp(join(tmpdir(), "kindstack-engine-"));
    const [warnings, errors]: [string[], string[]] = [[], []];
    const things = new Things();
    const host = new ProviderHost(new Map<string, AnyProvider>([[THING_STUB, recorded(things)], ...providers]));
    const settings: EngineSettings = {
      file: await recordingScript(directory),
      workDirectory: join(directory, "work"),
      backendUrl: backendUrl ?? `file://${join(directory, "state")}`,
      protection: { passphrase: { value: "the-passphrase" }, keyService: undefined },
      environment: { ...process.env, PSQL_PASSWORD: "psql-secret", PGPASSWORD: "pg-secret" },
      log: {
        warn: (_fields: object, message: string) => void warnings.push(message),
        error: (_fields: object, message: string) => void errors.push(message),
      },
      ...different,
    };
    const options = { processes: await openEngine(settings), host, timeoutMs: 60_000 };
    const engine = new TestEngine(directory, settings, options, things, warnings, errors);
    await engine.takeStarts();
    return engine;
  }

  /** Updates a stack to hold these things, `name: value`; the key of a thing is `<stack>/<name>`. */
  up(stack: string, values: Record<string, string>, options: UpOptions = {}): Promise<UpResult> {
    return this.engine.up(stack, () => this.declare(stack, values), options);
  }

  /** What a program says to have these things. */
  declare(stack: string, values: Record<string, string>): void {
    for (const [name, value] of Object.entries(values)) new Thing(name, { key: `${stack}/${name}`, value });
  }

  /** The things of a stack that are alive, by name. */
  thingsOf(stack: string): Record<string, string> {
    const own = [...this.things.live].filter(([key]) => key.startsWith(`${stack}/`));
    return Object.fromEntries(own.map(([key, value]) => [key.slice(stack.length + 1), value]));
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
    return filesUnder(join(this.directory, "state")).map((file) => basename(file));
  }

  /** A stack's checkpoint in the file backend. */
  async checkpoint(stack: string): Promise<Checkpoint> {
    const path = join(this.directory, "state", ".pulumi", "stacks", "kindstack", `${stack}.json`);
    const { latest } = JSON.parse(await readFile(path, "utf8")).checkpoint;
    return { resources: latest?.resources ?? [], pending: latest?.pending_operations ?? [] };
  }

  async close(): Promise<void> {
    await this.engine.close();
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

/** The engine of the Automation API on the backend of a test's own engine, with the same things. */
export async function stockBeside({ settings, directory, options }: TestEngine, name: string): Promise<StackEngine> {
  const [file, workDirectory] = [await resolveBinary("pulumi"), join(directory, name)];
  return AutomationApiEngine.open({ ...settings, file, workDirectory }, options);
}

/** An engine whose process is a program of the test's. */
export function withProgram({ settings, options }: TestEngine, file: string): GoEngine {
  const { environment, log } = settings;
  return new GoEngine({ ...options, processes: new EngineProcesses({ file, args: [], environment, log }) });
}

/** How a process of this version greets, with differences. */
export function helloOf(different: { version?: string; protocol?: number } = {}): string {
  return JSON.stringify({ method: "hello", params: { version: ENGINE_VERSION, protocol: PROTOCOL, ...different } });
}

/** How an update ended, to be compared as a whole: `toMatchObject` takes any object for an empty one. */
export function summaryOf({ summary: { result, resourceChanges } }: UpResult) {
  return { result, resourceChanges };
}

/** A script that notes its pid, its arguments and its environment, and then becomes the engine. */
async function recordingScript(directory: string): Promise<string> {
  const path = await resolveBinary("engine");
  const script = join(directory, "kindstack-engine");
  const record = `{ echo $$; echo "$*"; env; printf '\\f'; } > "$0.$$"; cat "$0.$$" >> '${directory}/starts'; rm "$0.$$"`;
  await writeFile(script, `#!/bin/sh\n${record}\nexec '${path}' "$@"\n`);
  await chmod(script, 0o755);
  return script;
}

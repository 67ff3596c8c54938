import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ProviderHost } from "../../providers/host/server";
import {
  StackEngine,
  type StackEngineOptions,
  type UpdateOptions,
  type UpdateResult,
} from "../../src/automation/engine";
import { openWorkspace, type WorkspaceSettings } from "../../src/automation/workspace";
import { resolveBinary } from "../../src/toolchain/resolve";
import { THING_STUB, Thing, Things } from "./things";

/** One call of the CLI. */
export interface Invocation {
  pid: number;
  args: string;
  environment: string;
}

export interface Checkpoint {
  resources: { urn: string }[];
  pending: { type: string; resource: { urn: string } }[];
}

/**
 * A stack engine with the real CLI, in a directory of its own. The CLI stands behind a script that writes down each of
 * its calls and then becomes it.
 */
export class TestEngine {
  readonly engine: StackEngine;
  #taken = 0;

  private constructor(
    readonly directory: string,
    readonly settings: WorkspaceSettings,
    readonly options: StackEngineOptions,
    readonly things: Things,
    readonly warnings: string[],
  ) {
    this.engine = new StackEngine(options);
  }

  /**
   * @param backendUrl a folder of its own, unless it is given
   * @param different what differs from a workspace with a passphrase
   */
  static async open(backendUrl?: string, different: Partial<WorkspaceSettings> = {}): Promise<TestEngine> {
    const directory = await mkdtemp(join(tmpdir(), "kindstack-engine-"));
    const things = new Things();
    const host = new ProviderHost(new Map([[THING_STUB, things]]));
    await host.start();
    const settings: WorkspaceSettings = {
      pulumi: await recordingScript(directory, (await resolveBinary("pulumi")).path),
      directory: join(directory, "work"),
      backendUrl: backendUrl ?? `file://${join(directory, "state")}`,
      protection: { passphrase: { value: "the-passphrase" }, keyService: undefined },
      environment: { ...process.env, PSQL_PASSWORD: "psql-secret", PGPASSWORD: "pg-secret" },
      ...different,
    };
    const warnings: string[] = [];
    const log = { info: () => {}, warn: (_fields: object, message: string) => void warnings.push(message) };
    const options = { workspace: await openWorkspace(settings), host, timeoutMs: 60_000, log };
    const engine = new TestEngine(directory, settings, options, things, warnings);
    await engine.takeInvocations();
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

  /** The calls of the CLI since this was last asked. */
  async takeInvocations(): Promise<Invocation[]> {
    const invocations = await this.#invocations();
    const fresh = invocations.slice(this.#taken);
    this.#taken = invocations.length;
    return fresh;
  }

  /** The process of the last call. */
  async lastPid(): Promise<number> {
    const pid = (await this.#invocations()).at(-1)?.pid;
    if (pid === undefined) throw new Error("the CLI was not called");
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
    this.options.host.stop();
    await rm(this.directory, { recursive: true, force: true });
  }

  async #invocations(): Promise<Invocation[]> {
    const text = await readFile(join(this.directory, "invocations"), "utf8");
    return text
      .split("\f")
      .filter((part) => part !== "")
      .map((part) => {
        const [pid = "", args = "", ...environment] = part.split("\n");
        return { pid: Number(pid), args, environment: environment.join("\n") };
      });
  }
}

/** How an update ended, to be compared as a whole: `toMatchObject` takes any object for an empty one. */
export function summaryOf({ outcome, changes }: UpdateResult): Pick<UpdateResult, "outcome" | "changes"> {
  return { outcome, changes };
}

/** A script that notes its pid, its arguments and its environment, and then becomes `pulumi`. */
async function recordingScript(directory: string, pulumi: string): Promise<string> {
  const script = join(directory, "pulumi");
  const record = `{ echo $$; echo "$*"; env; printf '\\f'; } > "$0.$$"; cat "$0.$$" >> '${directory}/invocations'; rm "$0.$$"`;
  await writeFile(script, `#!/bin/sh\n${record}\nexec '${pulumi}' "$@"\n`);
  await chmod(script, 0o755);
  return script;
}

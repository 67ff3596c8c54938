import { readdir, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { RetryableError } from "../../providers/errors";
import { fileBackendDirectory, stacksFolder } from "../automation/file-backend";
import { readCheckpoints } from "../automation/postgres-backend";
import type { Workspace } from "../automation/pulumi";
import { withScratch } from "../automation/scratch";
import type { StackState } from "../automation/stack-reader";
import { openWorkspace, type PulumiBinary } from "../automation/workspace";
import type { StateConfig } from "../config";
import type { NamedState } from "./backup-files";

const TIMEOUT_MS = 10 * 60_000;

/** All stacks of a state's backend. */
export interface StateBackend {
  /** The scheme of its URL. */
  scheme: string;
  names(): Promise<string[]>;
  /** Every stack's state. On `postgres://` they are of one moment; elsewhere each is whole, and of a moment of its own. */
  readAll(onState: (state: NamedState) => Promise<void>): Promise<void>;
  /** Puts a state that `pulumi stack export` wrote in place of a stack's own; makes the stack when it is not there. */
  write(name: string, file: string, options: { exists: boolean }): Promise<void>;
}

/**
 * Runs something with the backend that the environment names. A `file://` and a `postgres://` backend are read directly, any
 * other by a command of the CLI for each stack; all are written by the CLI, which takes their locks.
 */
export function withStateBackend<T>(
  state: StateConfig,
  pulumi: PulumiBinary,
  signal: AbortSignal,
  run: (backend: StateBackend) => Promise<T>,
): Promise<T> {
  return withScratch(tmpdir(), "kindstack-backup", async (workDirectory) => {
    const workspace = await openWorkspace({
      ...state,
      workDirectory,
      pulumi,
      environment: process.env,
      attachment: "", // no command that runs here asks a provider
      log: console,
    });
    return run(stateBackend(workspace, signal)).finally(() => workspace.pulumi.close());
  });
}

function stateBackend(workspace: Workspace, signal: AbortSignal): StateBackend {
  const { backendUrl } = workspace;
  const scheme = backendUrl.split("://", 1)[0] ?? "";
  const pulumi = (...args: string[]) => runCommand(workspace, signal, args);
  return {
    scheme,
    async names() {
      const stacks = JSON.parse(await pulumi("stack", "ls", "--json")) as { name: string }[];
      return stacks.map(({ name }) => name.split("/").at(-1) ?? name).sort();
    },
    async readAll(onState) {
      const onCheckpoint = (name: string, text: string) => onState({ name, state: exported(text) });
      const folder = fileBackendDirectory(backendUrl);
      if (folder !== undefined) return readFiles(stacksFolder(folder), onCheckpoint);
      if (scheme === "postgres") return readCheckpoints(backendUrl, onCheckpoint);
      for (const name of await this.names()) {
        const file = join(workspace.scratchDirectory, "export.json");
        await pulumi("stack", "export", "--stack", name, "--file", file);
        await onState({ name, state: JSON.parse(await readFile(file, "utf8")) as StackState });
      }
    },
    async write(name, file, { exists }) {
      if (!exists) await pulumi("stack", "init", name, "--no-select");
      await pulumi("stack", "import", "--stack", name, "--file", file);
    },
  };
}

async function readFiles(folder: string, onCheckpoint: (name: string, text: string) => Promise<void>): Promise<void> {
  const files = (await readdir(folder).catch(() => [])).filter((file) => /^[^.].*\.json(\.gz)?$/.test(file)).sort();
  for (const file of files) {
    const bytes = await readFile(join(folder, file)).catch(() => undefined); // its object may be deleted just now
    if (bytes === undefined) continue;
    const text = (file.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString("utf8");
    await onCheckpoint(file.replace(/\.json(\.gz)?$/, ""), text);
  }
}

/** A checkpoint, as a backend keeps it, as `pulumi stack export` writes it. */
function exported(checkpoint: string): StackState {
  const { checkpoint: inner, ...versions } = JSON.parse(checkpoint) as {
    version: number;
    checkpoint: { latest?: StackState["deployment"] };
  };
  return { ...versions, deployment: inner.latest ?? {} };
}

/** @returns what it printed */
async function runCommand({ pulumi }: Workspace, signal: AbortSignal, args: string[]): Promise<string> {
  const { exitCode, stdout, stderr, interrupted } = await pulumi.run({ args, timeoutMs: TIMEOUT_MS, signal });
  if (exitCode === 0) return stdout;
  const words = stderr.trim() || stdout.trim() || (interrupted ?? `exit code ${exitCode}`);
  throw new RetryableError("Unreadable", `pulumi ${args.slice(0, 2).join(" ")} failed: ${words}`);
}

import { tmpdir } from "node:os";
import { RetryableError } from "../../providers/errors";
import { type OnState, readEach } from "../automation/backend";
import { openBackend } from "../automation/open-backend";
import { askPulumi, type PulumiOptions } from "../automation/pulumi";
import { withScratch } from "../automation/scratch";
import { openWorkspace, type PulumiBinary } from "../automation/workspace";
import type { StateConfig } from "../config";

const TIMEOUT_MS = 10 * 60_000;

/** All stacks of a state's backend. */
export interface StateBackend {
  scheme: string;
  names(): Promise<string[]>;
  /** Reads every stack's state. On `postgres://`, all are of the same moment; elsewhere, each is of its own. */
  readAll(onState: OnState): Promise<void>;
  /** Replaces a stack's state with one that `pulumi stack export` wrote; creates the stack if it does not exist. */
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
    const options = { workspace, timeoutMs: TIMEOUT_MS };
    return run(stateBackend(options, signal)).finally(() => workspace.pulumi.close());
  });
}

function stateBackend(options: PulumiOptions, signal: AbortSignal): StateBackend {
  const backend = openBackend(options);
  const pulumi = async (...args: string[]) => {
    const failure = `pulumi ${args.slice(0, 2).join(" ")} failed`;
    const output = await askPulumi(options, args, failure, { signal });
    if (output === undefined) throw new RetryableError("Unreadable", `${failure}: there is no such stack`);
  };
  return {
    scheme: options.workspace.backendUrl.split("://", 1)[0] ?? "",
    names: () => backend.names(signal),
    readAll: (onState) => backend.readAll?.(onState) ?? readEach(backend, onState, signal),
    async write(name, file, { exists }) {
      if (!exists) await pulumi("stack", "init", name, "--no-select");
      await pulumi("stack", "import", "--stack", name, "--file", file);
    },
  };
}

import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import Type from "typebox";
import { Compile } from "typebox/compile";
import { TerminalError } from "../../providers/errors";
import { parseJson } from "../automation/parse-json";
import { withScratch } from "../automation/scratch";
import type { StackState } from "../automation/stack-state";
import { StackStates } from "../automation/stack-states";
import { openEngine } from "../automation/workspace";
import type { StateConfig } from "../config";

/** All stacks of a state's backend. */
export interface StateBackend {
  scheme: string;
  names(): Promise<string[]>;
  /** Reads every stack's state. On `postgres://`, all are of the same moment; elsewhere, each is of its own. */
  readAll(onState: (name: string, state: StackState) => Promise<void>): Promise<void>;
  /** Replaces a stack's state with one that `pulumi stack export` wrote; creates the stack if it does not exist. */
  write(name: string, file: string): Promise<void>;
}

const stateSchema = Compile(Type.Unsafe<StackState>({ type: "object", required: ["version", "deployment"] }));

/** Runs something with the backend that the environment names. */
export function withStateBackend<T>(
  state: StateConfig,
  file: string,
  signal: AbortSignal,
  run: (backend: StateBackend) => Promise<T>,
): Promise<T> {
  return withScratch(tmpdir(), "kindstack-backup", async (workDirectory) => {
    const engine = await openEngine({ ...state, workDirectory, file, environment: process.env, log: console });
    const states = new StackStates(engine);
    const backend: StateBackend = {
      scheme: state.backendUrl.split("://", 1)[0] ?? "",
      names: () => states.names(signal),
      readAll: (onState) => states.readAll(onState, signal),
      async write(name, file) {
        const deployment = parseJson(stateSchema, await readFile(file, "utf8"));
        if (deployment === undefined) throw new TerminalError("NoBackup", `${file} is not a stack's state`);
        await states.write(name, deployment, signal);
      },
    };
    return run(backend).finally(() => engine.close());
  });
}

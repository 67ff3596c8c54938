import type { DeclaredResource } from "../../providers/registration";
import type { AnyKind } from "../../stacks/contract/kind";
import type { KindObject } from "../../stacks/contract/object";
import type { RunContext } from "../../stacks/contract/run-context";
import { runProgram } from "../../stacks/contract/run-program";
import { declaredInTime } from "./declared";
import { serveProgram } from "./language-server";
import { runSdkProgram } from "./sdk-program";

/** What a Pulumi program is here: a function that registers resources. */
export interface Program {
  (): void | Promise<void>;
  /** Runs it in the SDK's runtime of another process, at the engine's request. */
  readonly runInSdk?: (request: Uint8Array, signal: AbortSignal) => Promise<void>;
}

/** The program of an object, wherever it runs. @param context what it may know, see {@link runProgram} */
export function programOf(kind: AnyKind, object: KindObject, context: RunContext): Program {
  const run = async () => runProgram(kind, object, context);
  const { remote, capabilities } = kind;
  if (remote === undefined || !capabilities.sdkRuntime) return run;
  const runInSdk: Program["runInSdk"] = (request, signal) => remote.runInSdk(object, context, request, signal);
  return Object.assign(run, { runInSdk });
}

/** A program as an engine runs it: as data, or at the address of its language runtime. */
export interface PreparedProgram {
  parameter: { resources: DeclaredResource[] } | { address: string };
  /** What the program threw while the engine ran it, with the class that is lost on the way through the engine. */
  error(): unknown;
  close(): void;
}

/**
 * Runs a program for the engine: before it, or while the engine asks for it.
 *
 * @param sdkRuntime see {@link Capabilities.sdkRuntime}
 * @param timeoutMs how long an update may take
 * @throws what the program throws before; RetryableError `ProgramTimedOut`
 */
export async function prepareProgram(
  program: Program,
  sdkRuntime: boolean | undefined,
  timeoutMs: number,
): Promise<PreparedProgram> {
  if (sdkRuntime) {
    const { runInSdk } = program;
    return serveProgram((request, signal) =>
      runInSdk === undefined ? runSdkProgram(program, request) : runInSdk(request.serializeBinary(), signal),
    );
  }
  const resources = await declaredInTime(program, timeoutMs);
  return { parameter: { resources }, error: () => undefined, close: () => {} };
}

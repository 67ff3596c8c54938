import { setImmediate as afterRejections } from "node:timers/promises";
import { promisify } from "node:util";
import * as grpc from "@grpc/grpc-js";
import { type ILanguageRuntimeServer, LanguageRuntimeService } from "@pulumi/pulumi/proto/language_grpc_pb";
import { GetRequiredPackagesResponse, type RunRequest, RunResponse } from "@pulumi/pulumi/proto/language_pb";
import { PluginInfo } from "@pulumi/pulumi/proto/plugin_pb";
import { version } from "@pulumi/pulumi/version";
import { asError, errorMessageOf, RetryableError } from "../../providers/errors";
import { inTime } from "../../providers/in-time";
import { type DeclaredResource, declaredBy, NotRegisteredError } from "../../providers/registration";
import type { AnyKind } from "../../stacks/contract/kind";
import type { KindObject } from "../../stacks/contract/object";
import type { RunContext } from "../../stacks/contract/run-context";
import { runProgram } from "../../stacks/contract/run-program";
import { runSdkProgram } from "./sdk-program";
import { currentUnhandled, withUnhandled } from "./unhandled";

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
 * @throws what the program throws before; RetryableError `ProgramTimedOut`
 */
export async function prepareProgram(
  program: Program,
  sdkRuntime: boolean | undefined,
  limits: ProgramLimits,
): Promise<PreparedProgram> {
  if (sdkRuntime) {
    const { runInSdk } = program;
    return serveProgram((request, signal) =>
      runInSdk === undefined ? runSdkProgram(program, request) : runInSdk(request.serializeBinary(), signal),
    );
  }
  const resources = await declaredInTime(program, limits);
  return { parameter: { resources }, error: () => undefined, close: () => {} };
}

/** A plain program declares resources. What takes longer belongs into a provider. */
const PROGRAM_LIMIT_MS = 60_000;

interface ProgramLimits {
  timeoutMs: number;
  /** Each ends the wait for the program. */
  signals?: readonly (AbortSignal | undefined)[];
}

/**
 * Collects what a plain program declares.
 *
 * @throws the program's errors, also of promises that it does not await; RetryableError `ProgramTimedOut`; the reason of a signal
 */
export async function declaredInTime(
  program: () => void | Promise<void>,
  { timeoutMs, signals = [] }: ProgramLimits,
): Promise<DeclaredResource[]> {
  const limitMs = Math.min(timeoutMs, PROGRAM_LIMIT_MS);
  const late = () =>
    new RetryableError(
      "ProgramTimedOut",
      `the kind's program did not end within ${limitMs / 1000} s; it runs again later`,
    );
  const failure = Promise.withResolvers<never>();
  failure.promise.catch(() => undefined);
  const interrupted = AbortSignal.any(signals.filter((signal) => signal !== undefined));
  interrupted.throwIfAborted();
  const interrupt = () => failure.reject(interrupted.reason);
  interrupted.addEventListener("abort", interrupt);
  let ends = false;
  const outer = currentUnhandled();
  const handle = (error: unknown) => {
    if (!ends) failure.reject(error);
    else if (outer === undefined) throw error;
    else outer(error);
  };
  const declared = withUnhandled(handle, async () => {
    const resources = await declaredBy(program);
    await afterRejections();
    return resources;
  });
  try {
    return await inTime(Promise.race([declared, failure.promise]), limitMs, late);
  } finally {
    ends = true;
    interrupted.removeEventListener("abort", interrupt);
  }
}

/** The part of Pulumi's language-runtime service that an engine needs of a program that runs already. */
type LanguageRuntime = Pick<ILanguageRuntimeServer, "run" | "getRequiredPackages" | "getPluginInfo"> &
  grpc.UntypedServiceImplementation;

/**
 * Serves a program of the SDK's runtime in this process, so that no language host has to be started or even installed.
 *
 * @param runProgram its signal tells that the engine asks no more
 */
async function serveProgram(runProgram: (request: RunRequest, signal: AbortSignal) => Promise<void>) {
  const closing = new AbortController();
  let thrown: unknown;
  const server = new grpc.Server();
  const run = async (request: RunRequest): Promise<RunResponse> => {
    const response = new RunResponse();
    try {
      await runProgram(request, closing.signal);
      return response;
    } catch (error) {
      // Resources that a failure kept from being registered must not be deleted: the engine gets the failure.
      if (error instanceof NotRegisteredError) return response.setError(error.message).setBail(true);
      thrown = asError(error);
      return response.setError(errorMessageOf(error));
    }
  };
  const runtime: LanguageRuntime = {
    run: (call, callback) => void run(call.request).then((response) => callback(null, response)),
    getRequiredPackages: (_call, callback) => callback(null, new GetRequiredPackagesResponse()),
    getPluginInfo: (_call, callback) => callback(null, new PluginInfo().setVersion(version)),
  };
  server.addService(LanguageRuntimeService, runtime);
  const port = await promisify(server.bindAsync.bind(server))("127.0.0.1:0", grpc.ServerCredentials.createInsecure());
  return {
    parameter: { address: `127.0.0.1:${port}` },
    error: () => thrown,
    close() {
      closing.abort(new RetryableError("UpdateEnded", "the update of this program has ended"));
      server.forceShutdown();
    },
  };
}

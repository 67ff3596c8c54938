import { setImmediate as afterRejections } from "node:timers/promises";
import { RetryableError } from "../../providers/errors";
import { inTime } from "../../providers/in-time";
import { type DeclaredResource, declaredBy } from "../../providers/registration";
import { serveProgram } from "./language-server";
import { currentUnhandled, withUnhandled } from "./unhandled";

/** What a Pulumi program is here: a function that registers resources. */
export type Program = () => void | Promise<void>;

/** A program as an engine runs it: as data, or at the address of its language runtime. */
export interface PreparedProgram {
  parameter: { resources: DeclaredResource[] } | { address: string };
  /** What the program threw while the engine ran it, with the class that is lost on the way through the engine. */
  error(): unknown;
  close(): void;
}

/** A plain program declares resources. What takes longer belongs into a provider. */
const PROGRAM_LIMIT_MS = 60_000;

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
  if (sdkRuntime) return serveProgram(program);
  const resources = await declaredInTime(program, timeoutMs);
  return { parameter: { resources }, error: () => undefined, close: () => {} };
}

/**
 * Collects what a plain program declares.
 *
 * @throws the program's errors, also of promises that it does not await; RetryableError `ProgramTimedOut`
 */
export async function declaredInTime(program: Program, timeoutMs: number): Promise<DeclaredResource[]> {
  const limitMs = Math.min(timeoutMs, PROGRAM_LIMIT_MS);
  const late = () =>
    new RetryableError(
      "ProgramTimedOut",
      `the kind's program did not end within ${limitMs / 1000} s; it runs again later`,
    );
  const unhandled = Promise.withResolvers<never>();
  unhandled.promise.catch(() => undefined);
  let ends = false;
  const outer = currentUnhandled();
  const handle = (error: unknown) => {
    if (!ends) unhandled.reject(error);
    else if (outer === undefined) throw error;
    else outer(error);
  };
  const declared = withUnhandled(handle, async () => {
    const resources = await declaredBy(program);
    await afterRejections();
    return resources;
  });
  try {
    return await inTime(Promise.race([declared, unhandled.promise]), limitMs, late);
  } finally {
    ends = true;
  }
}

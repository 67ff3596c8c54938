import { setImmediate as afterRejections } from "node:timers/promises";
import { RetryableError } from "../../providers/errors";
import { inTime } from "../../providers/in-time";
import { type DeclaredResource, declaredBy } from "../../providers/registration";
import { currentUnhandled, withUnhandled } from "./unhandled";

/** A plain program declares resources. What takes longer belongs into a provider. */
const PROGRAM_LIMIT_MS = 60_000;

/**
 * Collects what a plain program declares.
 *
 * @throws the program's errors, also of promises that it does not await; RetryableError `ProgramTimedOut`
 */
export async function declaredInTime(
  program: () => void | Promise<void>,
  timeoutMs: number,
): Promise<DeclaredResource[]> {
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

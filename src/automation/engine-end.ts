import { errorMessageOf, RetryableError } from "../../providers/errors";
import { containerMemory } from "./container-memory";

const MORE_MEMORY = "raise the memory limit (`resources` of the installation), or lower `concurrency`";

/**
 * Why an engine's process has ended and, where something can be done, what.
 *
 * @param killedAs why this process has killed it
 * @param killsBefore how many processes the container had lost for lack of memory when it was started
 */
export function describeEnd(
  code: number | null,
  signal: NodeJS.Signals | null,
  killedAs: string | undefined,
  killsBefore: number | undefined,
): string {
  if (killedAs !== undefined) return `Pulumi's engine was killed, as ${killedAs}`;
  if (signal === null) return `Pulumi's engine ended with exit code ${code}; the operator's log has its last words`;
  if (signal !== "SIGKILL") return `Pulumi's engine was killed by ${signal}`;
  const { kills, limitBytes } = containerMemory();
  if (kills === undefined) return `Pulumi's engine was killed by SIGKILL, perhaps for lack of memory: ${MORE_MEMORY}`;
  if (kills === killsBefore) return "Pulumi's engine was killed by SIGKILL";
  const limit = limitBytes === undefined ? "" : `, the container's limit being ${Math.round(limitBytes / 2 ** 20)} MiB`;
  return `Pulumi's engine was killed for lack of memory${limit}: ${MORE_MEMORY}`;
}

/** The program may be there again, as may the memory or the process number that it lacked; nothing would tell us. */
export function notStarted(error: unknown): RetryableError {
  return new RetryableError("NoEngine", `Pulumi's engine could not be started: ${errorMessageOf(error)}`);
}

import { readFileSync } from "node:fs";
import { errorMessageOf, RetryableError } from "../../providers/errors";

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

/** What the kernel says of the memory of the container that this process runs in. */
interface ContainerMemory {
  /** How many of its processes were killed for lack of memory; `undefined` where the kernel does not count that. */
  kills: number | undefined;
  /** `undefined` without a limit. */
  limitBytes: number | undefined;
}

/** Of cgroups of version 2, and of version 1. */
const FILES = [
  { kills: "memory.events", limit: "memory.max" },
  { kills: "memory/memory.oom_control", limit: "memory/memory.limit_in_bytes" },
];
/** Without a limit, version 1 has a number that no machine has. */
const NO_LIMIT = 2 ** 50;

/** @param root where the control groups are mounted: in a container, its own */
export function containerMemory(root = "/sys/fs/cgroup"): ContainerMemory {
  for (const { kills, limit } of FILES) {
    const count = /^oom_kill (\d+)$/m.exec(textOf(`${root}/${kills}`))?.[1];
    if (count === undefined) continue;
    const bytes = Number.parseInt(textOf(`${root}/${limit}`), 10);
    return { kills: Number(count), limitBytes: bytes < NO_LIMIT ? bytes : undefined };
  }
  return { kills: undefined, limitBytes: undefined };
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return ""; // another version, or another system
  }
}

import { readFileSync } from "node:fs";

/** What the kernel says of the memory of the container that this process runs in. */
export interface ContainerMemory {
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

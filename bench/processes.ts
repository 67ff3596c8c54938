import fs from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";

/*
 * What processes take, as Linux' /proc says.
 */

const CLOCK_TICKS_PER_SECOND = 100;
const SAMPLE_MS = 200;

/** MiB that are in memory now, or the most that ever were. */
export async function memoryMiB(pid: number, which: "now" | "peak"): Promise<number> {
  const status = await fs.readFile(`/proc/${pid}/status`, "utf8");
  const [, kilobytes] = (which === "now" ? /VmRSS:\s+(\d+) kB/ : /VmHWM:\s+(\d+) kB/).exec(status) ?? [];
  return Number(kilobytes ?? Number.NaN) / 1024;
}

/** Seconds of CPU time of a process and of all below it, those that have ended included. */
export async function treeCpuSeconds(pid: number): Promise<number> {
  const none = { own: 0, children: 0 }; // it has ended meanwhile, and its parent counts it
  const times = await Promise.all([pid, ...(await descendants(pid))].map((one) => cpuSeconds(one).catch(() => none)));
  return times.reduce((sum, { own, children }) => sum + own + children, 0);
}

/** Seconds of CPU time of a process, and of its children that have ended. */
export async function cpuSeconds(pid: number): Promise<{ own: number; children: number }> {
  const stat = await fs.readFile(`/proc/${pid}/stat`, "utf8");
  // Counted after the name, which may hold spaces: utime, stime, cutime and cstime are the 14th to the 17th field.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const seconds = (field: number) => Number(fields[field]) / CLOCK_TICKS_PER_SECOND;
  return { own: seconds(11) + seconds(12), children: seconds(13) + seconds(14) };
}

/** What was seen of a process and those that it has started, in samples. */
export interface TreeSamples {
  /** The most children, and theirs, at a time. */
  descendants: number;
  /** The most that all of them had in memory together; what they share is counted for each. */
  peakMiB: number;
}

/** Looks at a process and its descendants five times a second until the returned function is called. */
export function sampleTree(pid: number): () => Promise<TreeSamples> {
  const stop = new AbortController();
  const samples: TreeSamples = { descendants: 0, peakMiB: 0 };
  const sampling = (async () => {
    while (!stop.signal.aborted) {
      const pids = await descendants(pid);
      const sizes = await Promise.all([pid, ...pids].map((one) => memoryMiB(one, "now").catch(() => 0)));
      samples.descendants = Math.max(samples.descendants, pids.length);
      const total = sizes.reduce((sum, size) => sum + (Number.isNaN(size) ? 0 : size), 0); // a zombie has no size
      samples.peakMiB = Math.max(samples.peakMiB, total);
      await delay(SAMPLE_MS, undefined, { signal: stop.signal }).catch(() => {});
    }
  })();
  return async () => {
    stop.abort();
    await sampling;
    return samples;
  };
}

async function descendants(pid: number): Promise<number[]> {
  const found: number[] = [];
  for (const task of await fs.readdir(`/proc/${pid}/task`).catch(() => [])) {
    const list = await fs.readFile(`/proc/${pid}/task/${task}/children`, "utf8").catch(() => "");
    for (const child of list.split(" ").filter((word) => word.trim() !== "")) {
      found.push(Number(child), ...(await descendants(Number(child))));
    }
  }
  return found;
}

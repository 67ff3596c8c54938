import { PerformanceObserver } from "node:perf_hooks";
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

// Together, these settings halve the memory at rest, take a third from the peak of a burst, and cost an eighth of the operator's CPU
// time: `npm run bench -- heap`. By default, V8 collects when the heap is four times as large as the live data. The flag must be set
// before the first large import.
setFlagsFromString("--heap-growing-percent=100");

/** V8 itself lets it grow to 128 MiB, most of what an operator has at the peak of a burst. */
const YOUNG_GENERATION_BYTES = 32 * 2 ** 20;
const LOOK_EVERY_MS = 2_000;
/** Share of one core; renewing Leases and answering probes takes less. */
const IDLE_SHARE = 0.05;
/** Growth since the last collection that is worth another one, which takes about 0.2 s of CPU time. */
const WORTHWHILE_BYTES = 32 * 2 ** 20;

/**
 * Limits the young generation of this process until the returned function is called. V8 reads its option for the maximum
 * before any of our code runs, but reads the growth factor at each growth.
 */
export function limitYoungGeneration(): () => void {
  const limit = () => {
    const size = getHeapSpaceStatistics().find(({ space_name: name }) => name === "new_space")?.space_size ?? 0;
    setFlagsFromString(`--semi-space-growth-factor=${size < YOUNG_GENERATION_BYTES ? 2 : 1}`);
  };
  const observer = new PerformanceObserver(limit);
  observer.observe({ entryTypes: ["gc"] });
  return () => observer.disconnect();
}

/**
 * Makes V8 collect and shrink its heap after each burst, until the returned function is called. V8 itself keeps the
 * memory while nothing is allocated, and an operator is idle most of the time.
 */
export function giveBackMemoryWhenIdle(collect = collector()): () => void {
  let cpu = busyMs();
  let kept = 0;
  const timer = setInterval(() => {
    const before = cpu;
    cpu = busyMs();
    const isIdle = cpu - before < LOOK_EVERY_MS * IDLE_SHARE;
    if (!isIdle || process.memoryUsage().heapTotal < kept + WORTHWHILE_BYTES) return;
    collect();
    kept = process.memoryUsage().heapTotal;
  }, LOOK_EVERY_MS).unref();
  return () => clearInterval(timer);
}

function busyMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/**
 * The function of `node --expose-gc`, for a process without that option. V8 gives back emptied pages only after a collection
 * of the last resort.
 */
export function collector(): () => void {
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc") as (how: { type: "major"; flavor: "last-resort" }) => void;
  return () => gc({ type: "major", flavor: "last-resort" });
}

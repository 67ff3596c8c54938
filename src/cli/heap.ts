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

/** What is asked of the process. */
export interface Heap {
  /** CPU time of the process so far, in microseconds. */
  cpuUsage(): { user: number; system: number };
  /** Bytes that V8 has taken from the system. */
  size(): number;
  collect(): void;
}

/**
 * Makes V8 collect and shrink its heap after each burst, until the returned function is called. V8 itself keeps the
 * memory while nothing is allocated, and an operator is idle most of the time.
 */
export function giveBackMemoryWhenIdle(heap: Heap = ownHeap()): () => void {
  let cpu = busyMs(heap);
  let kept = 0;
  const timer = setInterval(() => {
    const before = cpu;
    cpu = busyMs(heap);
    const isIdle = cpu - before < LOOK_EVERY_MS * IDLE_SHARE;
    if (!isIdle || heap.size() < kept + WORTHWHILE_BYTES) return;
    heap.collect();
    kept = heap.size();
  }, LOOK_EVERY_MS).unref();
  return () => clearInterval(timer);
}

function busyMs(heap: Heap): number {
  const { user, system } = heap.cpuUsage();
  return (user + system) / 1000;
}

/** The heap of this process. */
export function ownHeap(): Heap {
  return {
    cpuUsage: () => process.cpuUsage(),
    size: () => process.memoryUsage().heapTotal,
    collect: collector(),
  };
}

/**
 * The function of `node --expose-gc`, for a process without that option. V8 gives back emptied pages only after a collection
 * of the last resort.
 */
function collector(): () => void {
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc") as (how: { type: "major"; flavor: "last-resort" }) => void;
  return () => gc({ type: "major", flavor: "last-resort" });
}

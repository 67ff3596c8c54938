import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

// By default, V8 collects when the heap is four times as large as the live data, which sets the peak of a burst. Twice
// as large costs no measurable time. The flag must be set before the first large import.
setFlagsFromString("--heap-growing-percent=100");

const LOOK_EVERY_MS = 10_000;
/** Share of one core; renewing Leases and answering probes takes less. */
const IDLE_SHARE = 0.05;
/** Growth since the last collection that is worth another one, which stops the process for about 80 ms. */
const WORTHWHILE_BYTES = 32 * 2 ** 20;

/**
 * Makes V8 collect and shrink its heap after each burst, until the returned function is called. V8 itself keeps the
 * memory while nothing is allocated, and an operator is idle most of the time.
 */
export function giveBackMemoryWhenIdle(collect = collector(), lookEveryMs = LOOK_EVERY_MS): () => void {
  let cpu = process.cpuUsage();
  let kept = 0;
  const timer = setInterval(() => {
    const { user, system } = process.cpuUsage(cpu);
    cpu = process.cpuUsage();
    const isIdle = (user + system) / 1000 < lookEveryMs * IDLE_SHARE;
    if (!isIdle || process.memoryUsage().heapTotal < kept + WORTHWHILE_BYTES) return;
    collect();
    kept = process.memoryUsage().heapTotal;
  }, lookEveryMs).unref();
  return () => clearInterval(timer);
}

/** What `node --expose-gc` gives, for a command that is started without it. */
export function collector(): () => void {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc") as () => void;
}

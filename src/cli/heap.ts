import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

// V8 would let garbage pile up to four times what is in use before it collects: the peak of a burst. Twice costs no more
// time that could be measured. It has to be said before the first large import.
setFlagsFromString("--heap-growing-percent=100");

const LOOK_EVERY_MS = 10_000;
/** Of one core; renewing Leases and answering probes stays below it. */
const IDLE_SHARE = 0.05;
/** What has come since the last time is worth a collection, which stops the process for about 80 ms. */
const WORTHWHILE_BYTES = 32 * 2 ** 20;

/**
 * Has V8 collect and shrink its heap when a burst is over, until the returned function is called. By itself V8 keeps what
 * it has as long as nothing is allocated, and what an operator does most of its life is nothing.
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

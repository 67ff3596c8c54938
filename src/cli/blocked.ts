import { Worker } from "node:worker_threads";

/** No garbage collection and no list of objects takes as long. */
const LIMIT_S = 60;
const MAX_NAME = 512;

/** Runs beside the process: its event loop runs on, also where that of the process does not. */
const WATCH = `
const { beats, name, limit } = require("node:worker_threads").workerData;
let [last, silent] = [-1, 0];
setInterval(() => {
  const now = Atomics.load(beats, 0);
  silent = now === last ? silent + 1 : 0;
  last = now;
  if (silent <= limit) return;
  const text = Buffer.from(name.slice()).toString().replace(/\\0.*/s, "");
  const what = "kindstack: the program of " + (text || "a kind") + " has not ended for " + limit + " s: does it loop?\\n";
  try {
    require("node:fs").writeSync(2, what);
  } finally {
    process.kill(process.pid, "SIGKILL"); // also where nothing reads the error
  }
}, 1000);
`;

interface Watchdog extends Disposable {
  /** Tells for which object a program runs from now on. */
  runs(name: string): void;
}

/**
 * Ends the process if code of a kind keeps it from doing anything else, also from noticing Ctrl-C. A program that only waits has
 * a time limit of its own.
 */
export function endIfBlocked(limit = LIMIT_S): Watchdog {
  const beats = new Int32Array(new SharedArrayBuffer(4));
  const name = new Uint8Array(new SharedArrayBuffer(MAX_NAME));
  const worker = new Worker(WATCH, { eval: true, workerData: { beats, name, limit } });
  worker.unref();
  const beat = setInterval(() => Atomics.add(beats, 0, 1), 500);
  beat.unref();
  return {
    runs(text) {
      name.fill(0);
      name.set(Buffer.from(text).subarray(0, MAX_NAME));
    },
    [Symbol.dispose]() {
      clearInterval(beat);
      void worker.terminate();
    },
  };
}

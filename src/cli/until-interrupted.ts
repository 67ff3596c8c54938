const SIGNALS = ["SIGINT", "SIGTERM"] as const;

/** Runs something with a signal that is aborted by Ctrl-C or SIGTERM, so that it can clean up; a second one ends the process. */
export async function untilInterrupted<T>(run: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const stop = new AbortController();
  const onStop = () => stop.abort(new Error("interrupted"));
  for (const name of SIGNALS) process.once(name, onStop);
  try {
    return await run(stop.signal);
  } finally {
    for (const name of SIGNALS) process.off(name, onStop);
  }
}

/**
 * Runs something with a signal that is aborted by Ctrl-C or SIGTERM, so that it can clean up; a second one ends the process.
 *
 * @param inOrder what has begun is always stopped in order: further signals, and the end of the terminal, change nothing
 */
export async function untilInterrupted<T>(run: (signal: AbortSignal) => Promise<T>, inOrder = false): Promise<T> {
  const stop = new AbortController();
  const onStop = () => stop.abort(new Error("interrupted"));
  const signals = inOrder ? (["SIGINT", "SIGTERM", "SIGHUP"] as const) : (["SIGINT", "SIGTERM"] as const);
  for (const name of signals) process[inOrder ? "on" : "once"](name, onStop);
  try {
    return await run(stop.signal);
  } finally {
    for (const name of signals) process.off(name, onStop);
  }
}

/**
 * Runs a function with an abort signal: Ctrl-C or SIGTERM aborts it, so that the function can clean up. A second Ctrl-C or
 * SIGTERM ends the process.
 *
 * @param inOrder what has begun is always stopped in order: further signals, and the end of the terminal, change nothing
 */
export async function untilInterrupted<T>(run: (signal: AbortSignal) => Promise<T>, inOrder = false): Promise<T> {
  const stop = new AbortController();
  const signals = inOrder ? (["SIGINT", "SIGTERM", "SIGHUP"] as const) : (["SIGINT", "SIGTERM"] as const);
  const onStop = () => {
    // The next signal has its usual effect, once all listeners have got this signal: libraries end the process where they find
    // no other listener.
    if (!inOrder) setImmediate(restore);
    stop.abort(new Error("interrupted"));
  };
  const restore = () => {
    for (const name of signals) process.off(name, onStop);
  };
  for (const name of signals) process.on(name, onStop);
  try {
    return await run(stop.signal);
  } finally {
    restore();
  }
}

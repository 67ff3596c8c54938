/** The right of an operator's work to write. Another replica may have got it meanwhile. */
export interface Fence {
  /**
   * To be called right before every write, with nothing awaited in between: a process that was frozen continues in the
   * middle of its work, and nothing but the clock tells it that its time is over.
   *
   * @throws RetryableError when the right has ended
   */
  check(): void;
  /** Aborted when the right ends, so that requests that are under way do not arrive after that. */
  readonly signal: AbortSignal;
}

/** The fence of work that no replica can take over. */
export function noFence(): Fence {
  return { check: () => {}, signal: new AbortController().signal };
}

/** The fence of work that several do together: it ends as soon as that of one of them does. */
export function commonFence(all: readonly (Fence | undefined)[]): Fence | undefined {
  const fences = [...new Set(all)].filter((fence) => fence !== undefined);
  if (fences.length < 2) return fences[0];
  const check = () => {
    for (const fence of fences) fence.check();
  };
  return { check, signal: AbortSignal.any(fences.map(({ signal }) => signal)) };
}

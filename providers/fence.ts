import { AsyncLocalStorage } from "node:async_hooks";

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

const fences = new AsyncLocalStorage<Fence | undefined>();

/** Runs `work`, and all that it starts, under a fence. */
export function withinFence<T>(fence: Fence | undefined, work: () => T): T {
  return fences.run(fence, work);
}

/** The fence of the work that is running. */
export function currentFence(): Fence | undefined {
  return fences.getStore();
}

/** @throws RetryableError when the work that is running may not write any more */
export function checkFence(): void {
  fences.getStore()?.check();
}

/**
 * Whether the provider call that is running may wait for something else to end. In an operator, where all work has a
 * fence, it throws a PendingError instead: a call that waits holds a worker that others need, perhaps to end what is
 * waited for, and an event leads back. In a plain `pulumi up` nothing would try again.
 */
export function mayWait(): boolean {
  return currentFence() === undefined;
}

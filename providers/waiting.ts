import { AsyncLocalStorage } from "node:async_hooks";

const withoutWaitingStore = new AsyncLocalStorage<true>();

/**
 * Runs provider calls that answer "not yet" ({@link PendingError}) where they would wait for something else to end.
 *
 * The operator does so: a call that waits holds a worker that others need, perhaps to end what is waited for, and an
 * event leads back anyway. In a plain `pulumi up` there is nothing that would try again, so its calls wait.
 */
export function withoutWaiting<T>(work: () => T): T {
  return withoutWaitingStore.run(true, work);
}

/** Whether the running call may wait for something else to end. */
export function mayWait(): boolean {
  return withoutWaitingStore.getStore() === undefined;
}

import { AsyncLocalStorage } from "node:async_hooks";

/** Earlier reads, by a key for each request. */
export type Snapshot = Map<string, Promise<unknown>>;

const snapshots = new AsyncLocalStorage<Snapshot | undefined>();

/** Runs a preview, and all that it starts, with each thing read once. A write must see what is there, and runs without. */
export function withinSnapshot<T>(snapshot: Snapshot | undefined, work: () => T): T {
  return snapshots.run(snapshot, work);
}

/** The snapshot of the work that is running. */
export function currentSnapshot(): Snapshot | undefined {
  return snapshots.getStore();
}

/** Reads something, unless the snapshot of the work that is running has it. */
export function readOnce<T>(key: string, read: () => Promise<T>): Promise<T> {
  const snapshot = currentSnapshot();
  const known = snapshot?.get(key) as Promise<T> | undefined;
  if (known !== undefined) return known;
  const reading = read();
  snapshot?.set(key, reading);
  return reading;
}

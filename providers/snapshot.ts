/** Earlier reads of a preview, by a key for each request, so that all of it sees the same. A write has none. */
export type Snapshot = Map<string, Promise<unknown>>;

/** Reads something, unless the snapshot has it. */
export function readOnce<T>(snapshot: Snapshot | undefined, key: string, read: () => Promise<T>): Promise<T> {
  const known = snapshot?.get(key) as Promise<T> | undefined;
  if (known !== undefined) return known;
  const reading = read();
  snapshot?.set(key, reading);
  return reading;
}

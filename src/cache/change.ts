import type { LiveObject } from "../../providers/kubernetes/client";
import { lineSplitter } from "../text/lines";

/**
 * What happened to an object between two states of the cache. `previous` is what the cache held. A deletion that was
 * `reported` came as an event, with the last state of the object; others are concluded from what is there later. A change that
 * was `restored` was found in the first list after a restore of the API server's data.
 */
export type ObjectChange =
  | { type: "added"; object: LiveObject }
  | { type: "modified"; object: LiveObject; previous: LiveObject; restored?: true }
  | { type: "deleted"; object: LiveObject; previous: LiveObject; reported?: true };

/** The states of an object before and after a change, of those that exist. */
export function statesOf(change: ObjectChange): LiveObject[] {
  return change.type === "added" ? [change.object] : [change.previous, change.object];
}

/**
 * Negative when `a` is the older version, 0 when they are the same, positive when it is the newer one. Resource
 * versions of one type are decimal numbers of any length and can be compared as such (so defined since Kubernetes 1.35).
 */
export function compareResourceVersions(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Managed fields are not read, and they are the larger part of a small object. */
export function withoutManagedFields(object: LiveObject): LiveObject {
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** What the API server says in a watch, as far as it is read. */
export type WatchEvent =
  | { type: "ADDED" | "MODIFIED" | "DELETED"; object: LiveObject }
  | { type: "BOOKMARK"; object: { metadata: { resourceVersion: string } } }
  | { type: "ERROR"; object: { code?: number; reason?: string; message?: string } };

/**
 * The complete events that each chunk brought, however the chunks are cut. What follows the last newline is an event that
 * was cut off; the next watch will bring it again.
 */
export async function* watchEvents(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<WatchEvent[]> {
  const decoder = new TextDecoder();
  const linesIn = lineSplitter();
  for await (const chunk of chunks) {
    const lines = linesIn(decoder.decode(chunk, { stream: true }));
    yield lines.filter((line) => line !== "").map((line) => JSON.parse(line) as WatchEvent);
  }
}

import type { LiveObject } from "../../providers/kubernetes/client";
import { lineSplitter } from "../text/lines";

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

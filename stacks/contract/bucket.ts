import { createHash } from "node:crypto";

/** Which of so many buckets, counted from 0, a name belongs to: the same for ever and everywhere, and each about as large. */
export function bucketOf(name: string, buckets: number): number {
  return buckets === 1 ? 0 : createHash("sha256").update(name).digest().readUInt32BE() % buckets;
}

import { createHash } from "node:crypto";

/** The shard, from 0 to `shards` - 1, that a stack and with it its objects belong to; the same for ever and everywhere. */
export function shardOf(stack: string, shards: number): number {
  return shards === 1 ? 0 : createHash("sha256").update(stack).digest().readUInt32BE() % shards;
}

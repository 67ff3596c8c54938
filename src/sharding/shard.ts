/**
 * How replicas share the work, in one word: two that differ in it may take the same object, or stack, for their own.
 *
 * @param partitions among how many partitions namespaces are spread whose objects share stacks, if they are
 */
export function layoutOf(shards: number, partitions: number | undefined): string {
  return partitions === undefined ? String(shards) : `${shards}~${partitions}`;
}

import Type from "typebox";

export const resourceChangeSchema = Type.Object({
  operation: Type.Enum(["create", "update", "replace", "delete"]),
  type: Type.String(),
  name: Type.String(),
});
export type ResourceChange = Type.Static<typeof resourceChangeSchema>;

/** `2 create, 1 update`: the counts of an update's history entry, without what stayed the same; empty for none. */
export function countsOf(resourceChanges: Readonly<Record<string, number>> = {}): string {
  return Object.entries(resourceChanges)
    .filter(([operation]) => operation !== "same")
    .map(([operation, count]) => `${count} ${operation}`)
    .join(", ");
}

/** `create Pod web/a` for each of the first changes, then how many more there are. */
export function listChanges(changes: readonly ResourceChange[], most: number): string[] {
  const lines = changes.slice(0, most).map(({ operation, type, name }) => `${operation} ${type} ${name}`);
  return changes.length > most ? [...lines, `${changes.length - most} more`] : lines;
}

/** `1.5 s`: how long an update took, by its history entry; `undefined` for one that has not ended. */
export function durationOf({ startTime, endTime }: { startTime: Date | string; endTime?: Date | string }) {
  return endTime && `${((+new Date(endTime) - +new Date(startTime)) / 1000).toFixed(1)} s`;
}

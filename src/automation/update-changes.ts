import Type from "typebox";
import type { FieldDrift } from "../../providers/provider";
import { describeChange } from "../text/plain-text";

/** See {@link FieldDrift}. */
export const fieldDriftSchema = Type.Object({
  field: Type.String(),
  wanted: Type.Unknown(),
  live: Type.Optional(Type.Unknown()),
  by: Type.Optional(Type.String()),
});

export const resourceChangeSchema = Type.Object({
  operation: Type.Enum(["create", "update", "replace", "delete"]),
  type: Type.String(),
  name: Type.String(),
  /** The corrected drift: fields that other clients had changed. */
  drift: Type.Optional(Type.Array(fieldDriftSchema)),
});
export type ResourceChange = Type.Static<typeof resourceChangeSchema>;

/** `2 create, 1 update`: the counts of an update's history entry, without what stayed the same; empty for none. */
export function countsOf(resourceChanges: Readonly<Record<string, number>> = {}): string {
  return Object.entries(resourceChanges)
    .filter(([operation]) => operation !== "same")
    .map(([operation, count]) => `${count} ${operation}`)
    .join(", ");
}

/** `spec.replicas 3 → 1 (kubectl-edit)`: a field that was corrected, and who had changed it. */
function describeDrift({ field, wanted, live, by }: FieldDrift): string {
  return `${field} ${describeChange(live, wanted).join(" → ")}${by === undefined ? "" : ` (${by})`}`;
}

/** `create Pod web/a` for each of the first changes, with what each corrected, then how many more there are. */
export function listChanges(changes: readonly ResourceChange[], most: number): string[] {
  const lines = changes.slice(0, most).map(({ operation, type, name, drift = [] }) => {
    const corrected = drift.map(describeDrift).join("; ");
    return `${operation} ${type} ${name}${corrected && `: ${corrected}`}`;
  });
  return changes.length > most ? [...lines, `${changes.length - most} more`] : lines;
}

/** `1.5 s`: how long an update took, by its history entry; `undefined` for a running update. */
export function durationOf({ startTime, endTime }: { startTime: Date | string; endTime?: Date | string }) {
  return endTime && `${((+new Date(endTime) - +new Date(startTime)) / 1000).toFixed(1)} s`;
}

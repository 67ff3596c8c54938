import Type from "typebox";
import { withoutPasswords } from "../../providers/passwords";

/** A standard Kubernetes condition (`metav1.Condition`). */
export interface Condition {
  type: string;
  status: "True" | "False" | "Unknown";
  /** CamelCase, for machines. */
  reason: string;
  /** A sentence for people. */
  message: string;
  observedGeneration?: number;
  lastTransitionTime: string;
}

export type NewCondition = Omit<Condition, "lastTransitionTime">;

export const conditionsSchema = Type.Array(
  Type.Object({
    type: Type.String({ maxLength: 316 }),
    status: Type.Enum(["True", "False", "Unknown"], { type: "string" }),
    reason: Type.String({ minLength: 1, maxLength: 1024 }),
    message: Type.String({ maxLength: 32768 }),
    observedGeneration: Type.Optional(Type.Integer({ minimum: 0, format: "int64" })),
    lastTransitionTime: Type.String({ format: "date-time" }),
  }),
  { "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"] },
);

/**
 * The conditions after an observation: a condition's transition time moves only when its status does, and conditions
 * that were not observed this time stay. Messages show no passwords.
 */
export function mergeConditions(previous: Condition[], observed: readonly NewCondition[], now: Date): Condition[] {
  const merged = new Map(previous.map((condition) => [condition.type, condition]));
  for (const condition of observed) {
    const before = merged.get(condition.type);
    merged.set(condition.type, {
      ...condition,
      message: withoutPasswords(condition.message),
      lastTransitionTime:
        before?.status === condition.status ? before.lastTransitionTime : now.toISOString().replace(/\.\d+Z$/, "Z"),
    });
  }
  return [...merged.values()];
}

export function findCondition(conditions: Condition[] | undefined, type: string): Condition | undefined {
  return conditions?.find((condition) => condition.type === type);
}

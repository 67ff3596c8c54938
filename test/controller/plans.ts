import { randomBytes } from "node:crypto";
import type { PlanSpec } from "../../stacks/contract/plan";

export const digest = () => `sha256:${randomBytes(32).toString("hex")}`;

/** What a plan says, for tests. */
export function planSpec(object: PlanSpec["object"], changes: Partial<PlanSpec> = {}): PlanSpec {
  return {
    object,
    digest: digest(),
    group: digest(),
    cause: { reason: "SpecChanged", at: "2026-11-25T12:00:00Z" },
    actions: { create: 0, update: 1, replace: 0, delete: 0 },
    steps: [
      {
        action: "update",
        type: "Deployment",
        name: "default/web",
        fields: [{ path: "spec.replicas", from: "1", to: "2" }],
        digest: digest(),
      },
    ],
    ...changes,
  };
}

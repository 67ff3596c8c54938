import Type from "typebox";
import type { LiveObject } from "../../providers/kubernetes/client";
import { digestSchema } from "./plan";

/*
 * An approval or a rejection of plans in its namespace, by their digests: it covers no other plan, and none that comes later. The API
 * server enforces who may make it, and that it is not changed (plan-policy.ts).
 */

export const APPROVAL_TYPE = { apiVersion: "kindstack.dev/v1alpha1", kind: "Approval" } as const;

const DECISIONS = ["Approve", "Reject"] as const;
export type DecisionOnPlan = (typeof DECISIONS)[number];

export const MAX_APPROVAL_DAYS = 30;
/** Of more plans, there are several approvals. */
export const MAX_APPROVED_PLANS = 1000;
const HOUR_MS = 3_600_000;
const DEFAULT_MS = 24 * HOUR_MS;

const name = Type.String({ minLength: 1, maxLength: 253 });

export const approvalSpecSchema = Type.Object(
  {
    object: Type.Optional(
      Type.Object(
        {
          kind: { ...name, description: "The kind's name: its plural, a dot, its group." },
          namespace: Type.Optional({ ...name, description: "Where it is not the approval's own." }),
          name,
        },
        { description: "Whose plan; absent with digests." },
      ),
    ),
    digest: Type.Optional({ ...digestSchema, description: "Of the plan." }),
    digests: Type.Optional(
      Type.Array(digestSchema, {
        minItems: 1,
        maxItems: MAX_APPROVED_PLANS,
        "x-kubernetes-list-type": "atomic",
        description: "Of several plans, such as those of a group.",
      }),
    ),
    decision: Type.Enum([...DECISIONS], { type: "string", default: "Approve" }),
    approver: Type.String({
      minLength: 1,
      maxLength: 1024,
      description: "Must be the name of the user who makes the approval.",
    }),
    reason: Type.Optional(Type.String({ maxLength: 1024 })),
    expiresAt: Type.Optional(
      Type.String({
        format: "date-time",
        description: `By default 24 h after it was made, at most ${MAX_APPROVAL_DAYS} days.`,
      }),
    ),
  },
  {
    "x-kubernetes-validations": [
      { rule: "self == oldSelf", message: "an approval cannot be changed" },
      { rule: "has(self.digest) != has(self.digests)", message: "needs either digest or digests" },
      { rule: "has(self.object) == has(self.digest)", message: "object and digest go together" },
    ],
  },
);

export type ApprovalSpec = Type.Static<typeof approvalSpecSchema>;
export type Approval = LiveObject & { spec: ApprovalSpec };

/** When an approval ends to hold, in ms since 1970; never later than the API server would allow. */
export function expiryOf({ metadata, spec }: Approval): number {
  const made = Date.parse(metadata.creationTimestamp ?? "") || 0;
  const wanted = spec.expiresAt === undefined ? made + DEFAULT_MS : Date.parse(spec.expiresAt);
  return Math.min(wanted, made + MAX_APPROVAL_DAYS * 24 * HOUR_MS);
}

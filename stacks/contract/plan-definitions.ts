import type Type from "typebox";
import type { Manifest } from "../../providers/kubernetes/client";
import { APPROVAL_TYPE, approvalSpecSchema } from "./approval";
import { AGE_COLUMN, definitionOf } from "./crd";
import type { KindNames } from "./kind";
import { PLAN_TYPE, planSpecSchema, planStatusSchema } from "./plan";
import { planPolicies } from "./plan-policy";
import type { PrinterColumn } from "./served-version";
import { structuralSchema } from "./structural";

const [GROUP = "", VERSION = ""] = PLAN_TYPE.apiVersion.split("/");
const CATEGORY = "kindstack-plans";

interface Definition extends Pick<KindNames, "kind" | "plural" | "shortNames"> {
  description: string;
  spec: Type.TSchema;
  status?: Type.TSchema;
  columns: readonly PrinterColumn[];
}

/** The CRDs of plans and approvals, and the policies that protect them. They come with the CRDs of kinds. */
export function planDefinitions(): Manifest[] {
  return [
    definition({
      kind: PLAN_TYPE.kind,
      plural: "plans",
      shortNames: ["kplan"],
      description: "What an update or the deletion of an object would do. It waits for an Approval.",
      spec: planSpecSchema,
      status: planStatusSchema,
      columns: [
        { name: "Kind", type: "string", jsonPath: ".spec.object.kind" },
        { name: "Object", type: "string", jsonPath: ".spec.object.name" },
        { name: "Create", type: "integer", jsonPath: ".spec.actions.create" },
        { name: "Update", type: "integer", jsonPath: ".spec.actions.update" },
        { name: "Replace", type: "integer", jsonPath: ".spec.actions.replace" },
        { name: "Delete", type: "integer", jsonPath: ".spec.actions.delete" },
        { name: "Cause", type: "string", jsonPath: ".spec.cause.reason" },
        { name: "State", type: "string", jsonPath: ".status.state" },
        { name: "Digest", type: "string", jsonPath: ".spec.digest", priority: 1 },
        AGE_COLUMN,
      ],
    }),
    definition({
      kind: APPROVAL_TYPE.kind,
      plural: "approvals",
      description: "The approval, or the rejection, of a plan, or of several.",
      spec: approvalSpecSchema,
      columns: [
        { name: "Kind", type: "string", jsonPath: ".spec.object.kind" },
        { name: "Object", type: "string", jsonPath: ".spec.object.name" },
        { name: "Decision", type: "string", jsonPath: ".spec.decision" },
        { name: "Approver", type: "string", jsonPath: ".spec.approver" },
        { name: "Expires", type: "string", jsonPath: ".spec.expiresAt" },
        { name: "Digest", type: "string", jsonPath: ".spec.digest", priority: 1 },
        AGE_COLUMN,
      ],
    }),
    ...planPolicies(),
  ];
}

/** Without a subresource for the status: what a plan says and what became of it is written at once. */
function definition({ description, spec, status, columns, ...names }: Definition): Manifest {
  const openAPIV3Schema = {
    description,
    type: "object",
    required: ["spec"],
    properties: {
      apiVersion: { type: "string" },
      kind: { type: "string" },
      metadata: { type: "object" },
      spec: structuralSchema(spec, "spec"),
      ...(status && { status: structuralSchema(status, "status") }),
    },
  };
  const version = { name: VERSION, served: true, storage: true };
  const own = { group: GROUP, version: VERSION, scope: "Namespaced", singular: names.kind.toLowerCase() } as const;
  const manifest = definitionOf({ ...names, ...own }, CATEGORY, {
    versions: [{ ...version, schema: { openAPIV3Schema }, additionalPrinterColumns: columns }],
  });
  return JSON.parse(JSON.stringify(manifest)); // without TypeBox's own marks
}

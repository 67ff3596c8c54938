import Type from "typebox";
import { Compile } from "typebox/compile";
import type { Manifest } from "../../providers/kubernetes/client";
import type { AdmissionRequest, Decision } from "../../stacks/contract/admission";
import { parseBody } from "../http/body";

const objectSchema = Type.Union([Type.Null(), Type.Object({ metadata: Type.Optional(Type.Object({})) })]);

/** What is read of an AdmissionReview; the API server sends more. */
const reviewSchema = Compile(
  Type.Object({
    apiVersion: Type.Literal("admission.k8s.io/v1"),
    kind: Type.Literal("AdmissionReview"),
    request: Type.Object({
      uid: Type.String({ minLength: 1, maxLength: 256 }),
      operation: Type.Enum(["CREATE", "UPDATE", "DELETE", "CONNECT"]),
      resource: Type.Object({ group: Type.Optional(Type.String()), resource: Type.String() }),
      name: Type.Optional(Type.String()),
      namespace: Type.Optional(Type.String()),
      dryRun: Type.Optional(Type.Boolean()),
      userInfo: Type.Object({
        username: Type.Optional(Type.String()),
        groups: Type.Optional(Type.Array(Type.String())),
      }),
      object: Type.Optional(objectSchema),
      oldObject: Type.Optional(objectSchema),
    }),
  }),
);

/** Parses an AdmissionReview. @throws Refusal saying where it is wrong */
export function parseReview(text: string): AdmissionRequest {
  const { request } = parseBody(reviewSchema, text, "an AdmissionReview of admission.k8s.io/v1");
  const { uid, operation, name = "", namespace = "", dryRun = false, userInfo, object, oldObject } = request;
  return {
    uid,
    operation,
    resource: { group: request.resource.group ?? "", name: request.resource.resource },
    name,
    namespace,
    dryRun,
    user: { username: userInfo.username ?? "", groups: userInfo.groups ?? [] },
    ...(object && { object: withMetadata(object) }),
    ...(oldObject && { oldObject: withMetadata(oldObject) }),
  };
}

/** The answer to a review, as the API server reads it. */
export function reviewAnswer(uid: string, decision: Decision): object {
  return {
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    response: { uid, ...(decision.allowed ? allowed(decision.patch ?? []) : refused(decision)) },
  };
}

const REASONS = { 403: "Forbidden", 409: "AlreadyExists", 503: "ServiceUnavailable" } as const;

function refused({ message, code = 403 }: Extract<Decision, { allowed: false }>) {
  return { allowed: false, status: { status: "Failure", message, code, reason: REASONS[code] } };
}

function allowed(patch: readonly object[]) {
  if (patch.length === 0) return { allowed: true };
  return { allowed: true, patchType: "JSONPatch", patch: Buffer.from(JSON.stringify(patch)).toString("base64") };
}

/** Reviewers of an object may read its metadata. */
function withMetadata(object: { metadata?: object }): Manifest {
  return { ...object, metadata: object.metadata ?? {} } as Manifest;
}

import type { Logger } from "pino";
import Type from "typebox";
import { Compile } from "typebox/compile";
import { ClassifiedError, errorMessageOf } from "../../providers/errors";
import type { Manifest } from "../../providers/kubernetes/client";
import type { AdmissionRequest, Decision } from "../../stacks/contract/admission";
import { parseBody } from "../http/answer";
import { Refusal } from "../http/refusal";

export interface Reviewer {
  /** In ms: a request that is not decided in time is refused. Shorter than the API server's time-out. */
  timeoutMs: number;
  review(request: AdmissionRequest): Decision | Promise<Decision>;
}

/** A review holds an object of at most 3 MiB, as the API server accepts it, before and after. */
export const MAX_REVIEW_BYTES = 8 * 1024 * 1024;

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

/**
 * The answer to an AdmissionReview, as the API server reads it.
 *
 * @throws Refusal for a text that is no AdmissionReview
 */
export async function answerReview(reviewer: Reviewer, text: string, logger: Logger): Promise<object> {
  const request = parseReview(text);
  const decision = await decide(reviewer, request, logger);
  return {
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    response: { uid: request.uid, ...(decision.allowed ? allowed(decision.patch ?? []) : refused(decision)) },
  };
}

function parseReview(text: string): AdmissionRequest {
  const { request } = parseBody(reviewSchema, text, "an AdmissionReview of admission.k8s.io/v1");
  const { uid, operation, resource, name = "", namespace = "", dryRun = false, userInfo, object, oldObject } = request;
  // As API servers send it; reviewers rely on that.
  const lacks =
    (["CREATE", "UPDATE"].includes(operation) && !object) || (["UPDATE", "DELETE"].includes(operation) && !oldObject);
  if (lacks) throw new Refusal(400, "BadRequest", `a review of the operation ${operation} lacks an object`);
  return {
    uid,
    operation,
    resource: { group: resource.group ?? "", name: resource.resource },
    name,
    namespace,
    dryRun,
    user: { username: userInfo.username ?? "", groups: userInfo.groups ?? [] },
    ...(object && { object: withMetadata(object) }),
    ...(oldObject && { oldObject: withMetadata(oldObject) }),
  };
}

/** Reviewers of an object may read its metadata. */
function withMetadata(object: { metadata?: object }): Manifest {
  return { ...object, metadata: object.metadata ?? {} } as Manifest;
}

/** A review that fails is a refusal with its reason: the API server would show the user less. */
async function decide({ timeoutMs, review }: Reviewer, request: AdmissionRequest, logger: Logger): Promise<Decision> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Decision>((resolve) => {
    const message = "the operator took too long to decide; try again";
    timer = setTimeout(() => resolve({ allowed: false, code: 503, message }), timeoutMs);
  });
  try {
    return await Promise.race([review(request), late]);
  } catch (error) {
    const { username: user } = request.user;
    logger.warn({ user, reason: errorMessageOf(error) }, "could not decide about a request");
    logger.debug({ err: error }, "a review failed"); // anyone may send what is no object of the type
    const reason = error instanceof ClassifiedError ? error.message : "internal error";
    return { allowed: false, code: 503, message: `the operator could not decide: ${reason}` };
  } finally {
    clearTimeout(timer);
  }
}

const REASONS = { 403: "Forbidden", 409: "AlreadyExists", 422: "Invalid", 503: "ServiceUnavailable" } as const;

function refused({ message, code = 403 }: Extract<Decision, { allowed: false }>) {
  return { allowed: false, status: { status: "Failure", message, code, reason: REASONS[code] } };
}

function allowed(patch: readonly object[]) {
  if (patch.length === 0) return { allowed: true };
  return { allowed: true, patchType: "JSONPatch", patch: Buffer.from(JSON.stringify(patch)).toString("base64") };
}

import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import type { AdmissionWebhook, KindAdmission } from "./admission";
import { ORPHANED_ANNOTATION, OWN_ANNOTATIONS, USER_ANNOTATIONS } from "./annotations";
import type { AnyKind } from "./kind";
import { policyBinding, type Validation, validatingPolicy } from "./validating-policy";

/** Of what serves all kinds: the policy, its binding, the webhook configuration. */
export const OBJECT_ADMISSION = "objects.kindstack.dev";

const ANNOTATION_VARIABLES = {
  annotations: "object.?metadata.?annotations.orValue({})",
  before: "oldObject == null ? {} : oldObject.?metadata.?annotations.orValue({})",
  // An object that has a wrong one already can still be written.
  changed:
    "variables.annotations.filter(key, key.startsWith('kindstack.dev/') && " +
    "(!(key in variables.before) || variables.before[key] != variables.annotations[key]))",
} as const;
/** A record of the same deletion: the API server asks again when the object has changed meanwhile, as by the record. */
const SAME_REQUEST_MS = 30_000;

/** What concerns objects of all kinds: annotations that cannot be understood, and `kubectl delete --cascade=orphan`. */
export function objectAdmission(kinds: readonly AnyKind[]): KindAdmission {
  return {
    watches: {},
    objects: () => annotationPolicy(kinds),
    webhooks: () => [orphanWebhook(kinds)],
  };
}

function annotationPolicy(kinds: readonly AnyKind[]): Manifest[] {
  const known = [...Object.keys(USER_ANNOTATIONS), ...OWN_ANNOTATIONS];
  const unknown = `variables.changed.filter(key, !(key in ${listOf(known)}))`;
  const valued = Object.entries(USER_ANNOTATIONS).flatMap(([key, allowed]) =>
    allowed === undefined ? [] : [validationOf(key, allowed)],
  );
  const policy = validatingPolicy(OBJECT_ADMISSION, {
    rules: kinds.map(ruleOf),
    variables: ANNOTATION_VARIABLES,
    validations: [
      {
        expression: `size(${unknown}) == 0`,
        messageExpression: `'unknown annotation ' + ${unknown}[0] + '; known are ${Object.keys(USER_ANNOTATIONS).join(", ")}'`,
        reason: "Invalid",
      },
      ...valued,
    ],
  });
  return [policy, policyBinding(OBJECT_ADMISSION, OBJECT_ADMISSION)];
}

function validationOf(key: string, allowed: readonly string[]): Validation {
  const value = `variables.annotations['${key}']`;
  const lower = listOf(allowed.map((one) => one.toLowerCase()));
  return {
    expression: `!('${key}' in variables.changed) || ${value}.trim().lowerAscii() in ${lower}`,
    messageExpression: `'annotation ${key}: "' + ${value} + '" must be ${allowed.join(" or ")}'`,
    reason: "Invalid",
  };
}

function listOf(texts: readonly string[]): string {
  return `[${texts.map((text) => `'${text}'`).join(", ")}]`;
}

/**
 * Records that a deletion leaves the object's resources behind. The garbage collector soon removes what the API server
 * makes of that, so an operator that is away would see a plain deletion. While no operator answers, such a deletion is refused.
 */
function orphanWebhook(kinds: readonly AnyKind[]): AdmissionWebhook {
  return {
    name: `orphan.${OBJECT_ADMISSION}`,
    type: "validating",
    rules: kinds.map((kind) => ({ ...ruleOf(kind), operations: ["DELETE"] })),
    failurePolicy: "Fail",
    matchConditions: [
      {
        name: "orphan",
        expression:
          "(has(request.options.propagationPolicy) && request.options.propagationPolicy == 'Orphan') || " +
          "(has(request.options.orphanDependents) && request.options.orphanDependents)",
      },
    ],
    timeoutSeconds: 10,
    sideEffects: "NoneOnDryRun",
    review: async ({ oldObject, dryRun }, { client }) => {
      if (oldObject === undefined || dryRun) return { allowed: true };
      const { metadata } = oldObject as LiveObject;
      const recorded = Date.parse(metadata.annotations?.[ORPHANED_ANNOTATION] ?? "");
      if (Date.now() - recorded < SAME_REQUEST_MS) return { allowed: true };
      const annotations = { [ORPHANED_ANNOTATION]: new Date().toISOString() };
      await client.mergePatch(oldObject, metadata.name, metadata.namespace, {
        metadata: { uid: metadata.uid, annotations },
      });
      return { allowed: true };
    },
  };
}

function ruleOf({ group, plural, scope }: AnyKind) {
  return { apiGroups: [group], apiVersions: ["*"], resources: [plural], scope };
}

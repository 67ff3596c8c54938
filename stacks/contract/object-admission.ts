import { isDeepStrictEqual } from "node:util";
import { isApiError } from "../../providers/kubernetes/api-server";
import { type KubernetesClient, known, type LiveObject, type Manifest } from "../../providers/kubernetes/client";
import { groupVersionPath } from "../../providers/kubernetes/resource-types";
import type { Spelling } from "../../providers/spelling";
import type { AdmissionRequest, AdmissionView, AdmissionWebhook, Decision, KindAdmission } from "./admission";
import { KEY_PATTERN, OWN_ANNOTATIONS, USER_ANNOTATIONS } from "./annotations";
import { type AnyKind, kindApiVersion } from "./kind";
import { kindOf } from "./kind-name";
import { recordOrphaned } from "./orphan-record";
import { policyBinding, type Validation, validatingPolicy } from "./validating-policy";

/** Of what serves all kinds: the policy, its binding, the webhook configuration. */
export const OBJECT_ADMISSION = "objects.kindstack.dev";

const ANNOTATION_VARIABLES = {
  annotations: "object.?metadata.?annotations.orValue({})",
  before: "oldObject == null ? {} : oldObject.?metadata.?annotations.orValue({})",
  // An object that has a wrong one already can still be written.
  changed:
    `variables.annotations.filter(key, key.matches(r'${KEY_PATTERN}') && ` +
    "(!(key in variables.before) || variables.before[key] != variables.annotations[key]))",
  labelled:
    `${listOf(Object.keys(USER_ANNOTATIONS))}.filter(key, key in object.?metadata.?labels.orValue({}) && ` +
    "(oldObject == null || !(key in oldObject.?metadata.?labels.orValue({}))))",
} as const;
/** So long after a review its deletion is looked out for; the API server stores it within milliseconds. */
const FOLLOW_MS = 10_000;
/** So many deletions are looked out for at the same time; each costs a watch. */
const MAX_FOLLOWED = 32;
/** What the API server notes on an object until the garbage collector has released what it owned. */
const ORPHAN_FINALIZER = "orphan";

/**
 * What concerns objects of all kinds: annotations that cannot be understood, `kubectl delete --cascade=orphan`, and requests in
 * another version than the stored one.
 */
export function objectAdmission(kinds: readonly AnyKind[]): KindAdmission {
  return {
    watches: {},
    objects: () => annotationPolicy(kinds),
    webhooks: () => [orphanWebhook(kinds), ...storedVersionWebhooks(kinds)],
  };
}

function annotationPolicy(kinds: readonly AnyKind[]): Manifest[] {
  const known = [...Object.keys(USER_ANNOTATIONS), ...OWN_ANNOTATIONS];
  const unknown = `variables.changed.filter(key, !(key in ${listOf(known)}))`;
  const valued = Object.entries(USER_ANNOTATIONS).flatMap(([key, spelling]) =>
    spelling === undefined ? [] : [validationOf(key, spelling)],
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
      {
        expression: "size(variables.labelled) == 0",
        messageExpression: "'label ' + variables.labelled[0] + ': it must be an annotation'",
        reason: "Invalid",
      },
      ...valued,
    ],
  });
  return [policy, policyBinding(OBJECT_ADMISSION, OBJECT_ADMISSION)];
}

function validationOf(key: string, { spells, problemOf }: Spelling): Validation {
  const value = `variables.annotations['${key}']`;
  return {
    expression: `!('${key}' in variables.changed) || ${spells(value)}`,
    messageExpression: `'annotation ${key}: ' + ${problemOf(value)}`,
    reason: "Invalid",
  };
}

function listOf(texts: readonly string[]): string {
  return `[${texts.map((text) => `'${text}'`).join(", ")}]`;
}

/**
 * Records that a deletion leaves the object's resources behind. The garbage collector soon removes what the API server
 * makes of that, so an operator that is away would see a plain deletion. While no operator answers, such a deletion is refused.
 *
 * A review alone records nothing, as anyone may have sent it: it has the object watched, and what is stored decides.
 */
function orphanWebhook(kinds: readonly AnyKind[]): AdmissionWebhook {
  let followed = 0;
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
    review: async ({ oldObject, dryRun }, view) => {
      if (oldObject === undefined || dryRun) return { allowed: true };
      const object = oldObject as LiveObject;
      if (kindOf(kinds, object) === undefined) return { allowed: true };
      const live = await known(view.client.get(object, object.metadata.name, object.metadata.namespace));
      if (live === undefined || live.metadata.uid !== object.metadata.uid) return { allowed: true };
      if (followed >= MAX_FOLLOWED) {
        const message = "too many deletions with the policy Orphan at the same time: try again";
        return { allowed: false, code: 503, message };
      }
      followed++;
      const states = view.follow(object, AbortSignal.timeout(FOLLOW_MS));
      void followDeletion(states, view).finally(() => followed--);
      await states; // none of them can be missed from here on
      return { allowed: true };
    },
  };
}

/** Notes on an object that its deletion leaves its resources, as soon as that is so. */
async function followDeletion(states: Promise<AsyncIterable<LiveObject>>, { client }: AdmissionView): Promise<void> {
  try {
    for await (const state of await states) {
      const { deletionTimestamp, finalizers = [] } = state.metadata;
      if (deletionTimestamp === undefined || !finalizers.includes(ORPHAN_FINALIZER)) continue;
      await recordOrphaned(client, state);
      return;
    }
  } catch {} // it cannot be watched, was not deleted, or has gone; the operator that updates the object sees the same
}

function ruleOf({ group, plural, scope }: AnyKind) {
  return { apiGroups: [group], apiVersions: ["*"], resources: [plural], scope };
}

/*
 * The API server judges an object by the schema and the rules of the version that a request is in, and converts it afterwards:
 * what the stored version demands is bypassed through an older one. Rules differ between the API server's CEL and any other,
 * so the API server itself is asked, by a dry run of the same change in the stored version.
 */

const NAME = "versions.objects.kindstack.dev";

/** What refuses in another version what the stored one refuses; none where no kind has several versions. */
function storedVersionWebhooks(kinds: readonly AnyKind[]): AdmissionWebhook[] {
  const several = kinds.filter(({ capabilities: { versions = [] } }) => versions.length > 0);
  if (several.length === 0) return [];
  const stored = several.map((kind) => `'${kindApiVersion(kind)}/${kind.plural}'`);
  const requested = ["group", "version", "resource"].map((field) => `request.requestResource.${field}`);
  return [
    {
      name: NAME,
      type: "validating",
      // An object is sent here in the stored version, whichever the request is in.
      rules: several.map(({ group, version, plural, scope }) => ({
        apiGroups: [group],
        apiVersions: [version],
        operations: ["CREATE", "UPDATE"],
        resources: [plural, `${plural}/scale`],
        scope,
      })),
      failurePolicy: "Fail",
      matchConditions: [
        { name: "another-version", expression: `!([${requested.join(", ")}].join('/') in [${stored.join(", ")}])` },
      ],
      timeoutSeconds: 10,
      sideEffects: "None",
      review: async (request, { client }) => {
        const { group, name } = request.resource;
        const kind = several.find((one) => one.group === group && one.plural === name);
        return kind === undefined ? { allowed: true } : reviewChange(kind, request, client);
      },
    },
  ];
}

async function reviewChange(
  kind: AnyKind,
  request: AdmissionRequest,
  client: Pick<KubernetesClient, "json">,
): Promise<Decision> {
  const { object, oldObject, namespace } = request;
  // What was allowed once may stay, so that an object whose rules have become stricter can end.
  if (object === undefined || isDeepStrictEqual(object.spec, oldObject?.spec)) return { allowed: true };
  const place = namespace === "" ? "" : `/namespaces/${encodeURIComponent(namespace)}`;
  const path = `${groupVersionPath(kindApiVersion(kind))}${place}/${kind.plural}`;
  const query = { dryRun: "All", fieldManager: NAME };
  try {
    if (oldObject === undefined) await client.json("POST", path, { query, body: created(kind, object) });
    else {
      const body = changed(kind, object, oldObject);
      const contentType = "application/json-patch+json";
      await client.json("PATCH", `${path}/${encodeURIComponent(request.name)}`, { query, body, contentType });
    }
  } catch (error) {
    if (isApiError(error, 422)) return { allowed: false, code: 422, message: error.message };
    // There is such an object, or it has changed: the API server finds that as well, and asks again.
    if (!isApiError(error, 409)) throw error;
  }
  return { allowed: true };
}

function created(kind: AnyKind, { metadata, spec }: Manifest): Manifest {
  const { name, generateName, namespace, labels, annotations } = metadata;
  const kept = Object.entries({ name, generateName, namespace, labels, annotations }).filter(([, value]) => value);
  return { apiVersion: kindApiVersion(kind), kind: kind.kind, metadata: Object.fromEntries(kept), spec } as Manifest;
}

function changed(kind: AnyKind, { kind: type, spec }: Manifest, { metadata }: Manifest): object[] {
  const isScale = type === "Scale" && kind.kind !== "Scale";
  const scaled = kind.capabilities.scale?.specReplicasPath.split(".").slice(1);
  return [
    { op: "add", path: "/metadata/resourceVersion", value: metadata.resourceVersion },
    ...(isScale && scaled !== undefined
      ? [{ op: "add", path: `/${scaled.join("/")}`, value: (spec as { replicas?: number }).replicas ?? 0 }]
      : [{ op: "add", path: "/spec", value: spec }]),
  ];
}

import type { UserInfo } from "../../providers/kubernetes/access-review";
import type { KubernetesClient, LiveObject, Manifest, ObjectType } from "../../providers/kubernetes/client";

/** A request to the API server, before it takes effect. */
export interface AdmissionRequest {
  /** Of this request; the same when a webhook is asked about it again. */
  uid: string;
  operation: "CREATE" | "UPDATE" | "DELETE" | "CONNECT";
  /** What it is sent to: `{ group: "apps", name: "deployments" }`; the core group is empty. */
  resource: { group: string; name: string };
  /** As the API server has authenticated them. */
  user: Required<Pick<UserInfo, "username" | "groups">>;
  /** Empty while a name is yet to be generated. */
  name: string;
  namespace: string;
  /** As it is to be; absent for deletions. */
  object?: Manifest;
  /** As it is; absent for creations. */
  oldObject?: Manifest;
  /** Nothing will be stored; a review must have no effect either. */
  dryRun: boolean;
}

/** One operation of a JSON patch (RFC 6902). */
export interface PatchOperation {
  op: "add" | "remove" | "replace";
  path: string;
  value?: unknown;
}

/** A refusal's message says what would be allowed; the user reads it. */
export type Decision =
  | { allowed: true; patch?: readonly PatchOperation[] }
  | { allowed: false; message: string; code?: 403 | 409 | 422 | 503 };

/**
 * A type of objects that reviews look up: the kind itself, one that it owns, one of {@link KindAdmission.objects}, or another
 * kind. Those may be watched.
 */
export interface AdmissionWatch extends ObjectType {
  /** The type is another kind: nothing is found where this operator does not serve it. */
  isOtherKind?: true;
  /** Only what it selects is watched. */
  labelSelector?: string;
  /** Named functions from an object to the values under which it is found. */
  indexers?: Record<string, (object: LiveObject) => string[]>;
  /** What the cache keeps of an object. Default: all but its managed fields. */
  transform?(object: LiveObject): LiveObject;
  /** Called with each state of an object, when the cache has it. */
  onChange?(object: LiveObject, view: AdmissionView): void;
  /** Called with the last state of an object that is gone. */
  onDelete?(object: LiveObject, view: AdmissionView): void;
}

/** What reviews know of the cluster without asking it: caches that were filled before the first review. */
export interface AdmissionView {
  /** The client of the operator, for what must not be stale. */
  readonly client: Pick<KubernetesClient, "get" | "mergePatch" | "delete" | "json">;
  get(watch: string, key: string): LiveObject | undefined;
  byIndex(watch: string, index: string, value: string): LiveObject[];
  /** The version up to which the cache of that watch is known to be complete. */
  version(watch: string): string;
  /**
   * The states that an object has after the given one, until the signal ends them.
   *
   * @returns once none of them can be missed
   * @throws ApiError when it cannot be watched
   */
  follow(object: LiveObject, signal: AbortSignal): Promise<AsyncIterable<LiveObject>>;
  /** Warns of an object by an Event. */
  warn(object: LiveObject, reason: string, message: string): void;
}

/** One webhook, as the API server is told of it and as it answers. */
export interface AdmissionWebhook {
  /** With a domain, unique in its kind: `namespaces.capsule.clastix.io`. */
  readonly name: string;
  readonly type: "mutating" | "validating";
  readonly rules: readonly {
    apiGroups: readonly string[];
    apiVersions: readonly string[];
    operations: readonly AdmissionRequest["operation"][];
    resources: readonly string[];
    scope: "Cluster" | "Namespaced"; // see `ResourceRule`
  }[];
  /** What happens while no operator answers. */
  readonly failurePolicy: "Fail" | "Ignore";
  /** A label selector: the webhook is asked only about what is in such namespaces. */
  readonly namespaceSelector?: object;
  /** CEL over the request; the webhook is asked only when all are true. */
  readonly matchConditions?: readonly { name: string; expression: string }[];
  readonly timeoutSeconds: number;
  /** Whether the review writes anything, which it must not for a dry run. */
  readonly sideEffects: "None" | "NoneOnDryRun";
  review(request: AdmissionRequest, view: AdmissionView): Decision | Promise<Decision>;
}

/** The admission of a kind, for requests about objects besides its own. */
export interface KindAdmission {
  readonly watches: Readonly<Record<string, AdmissionWatch>>;
  /** Cluster-wide objects, such as policies and roles, that the operator maintains while it serves admission. */
  objects(): readonly Manifest[];
  webhooks(): readonly AdmissionWebhook[];
}

/** The Secret of the operator's certificate for admission, and of its CA. */
export const CERTIFICATE_SECRET = "kindstack-admission-tls";

/** The label of all objects made for admission; the operator watches them by it. */
export const ADMISSION_LABEL = "kindstack.dev/admission";

/** The type of the configuration for webhooks of that type. */
export function webhookConfigurationKind(type: AdmissionWebhook["type"]): string {
  return type === "mutating" ? "MutatingWebhookConfiguration" : "ValidatingWebhookConfiguration";
}

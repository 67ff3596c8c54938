import type { KubeConfig } from "@kubernetes/client-node";
import { type Dispatcher, request } from "undici";
import { ClassifiedError, type ErrorClass } from "../errors";
import { checkFence, currentFence } from "../fence";
import type { Reason } from "../reasons";
import { Login } from "./login";

/** Who owns an object, as Kubernetes' garbage collector reads it. */
export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

/** One field manager's record of the fields that it owns. */
export interface ManagedFieldsEntry {
  manager?: string;
  operation?: string;
  subresource?: string;
  fieldsV1?: Record<string, unknown>;
}

/** The metadata of an object, as far as Kindstack reads it. */
export interface ObjectMeta {
  name?: string;
  generateName?: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: OwnerReference[];
  managedFields?: ManagedFieldsEntry[];
}

/** What is written to the API server. */
export interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  [field: string]: unknown;
}

/** What the API server returned: it has a name, a UID and a version. */
export interface LiveObject extends Manifest {
  metadata: ObjectMeta & { name: string; uid: string; resourceVersion: string };
}

export interface ListResult {
  items: LiveObject[];
  resourceVersion: string;
}

export interface ListOptions {
  namespace?: string | undefined;
  labelSelector?: string | undefined;
  signal?: AbortSignal | undefined;
}

/** A type of Kubernetes objects. */
export interface ObjectType {
  apiVersion: string;
  kind: string;
}

/** Where objects of one type are served. */
export interface ResourceType extends ObjectType {
  plural: string;
  namespaced: boolean;
}

/** Types of Kubernetes itself, which need no discovery. */
const BUILT_IN: readonly ResourceType[] = [
  { apiVersion: "v1", kind: "ConfigMap", plural: "configmaps", namespaced: true },
  { apiVersion: "v1", kind: "Namespace", plural: "namespaces", namespaced: false },
  { apiVersion: "v1", kind: "Pod", plural: "pods", namespaced: true },
  { apiVersion: "v1", kind: "Secret", plural: "secrets", namespaced: true },
  { apiVersion: "events.k8s.io/v1", kind: "Event", plural: "events", namespaced: true },
  { apiVersion: "coordination.k8s.io/v1", kind: "Lease", plural: "leases", namespaced: true },
];

/** The API server's refusal, with its own words, status code and reason. */
export class ApiError extends ClassifiedError {
  readonly errorClass: ErrorClass;

  constructor(
    readonly status: number,
    reason: string,
    message: string,
  ) {
    super(reason as Reason, message); // the server has reasons of its own
    // What the server understood and refused stays refused until the request changes.
    const refused = [400, 403, 405, 413, 415, 422].includes(status);
    this.errorClass = refused && !HEALS.test(message) ? "terminal" : "retryable";
  }

  get notFound(): boolean {
    return this.status === 404;
  }
}

/**
 * What the server forbids and will allow again: for a missing right, which can be granted without touching the object; in
 * a namespace that is on its way out; and where a quota is used up. What admission refuses does not heal.
 */
const HEALS =
  /" cannot \w+ resource "|is attempting to grant RBAC permissions not currently held|is being terminated|exceeded quota/;

/** The field manager of everything that Kindstack applies. */
export const FIELD_MANAGER = "kindstack";

export interface RequestArguments {
  query?: Record<string, string | undefined>;
  body?: unknown;
  contentType?: string;
  accept?: string;
  signal?: AbortSignal | undefined;
}

const REQUEST_TIMEOUT_MS = 30_000;
const ENDLESS = 0;
const PAGE_SIZE = "500";
const METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/**
 * A client of the API server for objects of any kind.
 *
 * The stock client is used for what it is good at, kubeconfigs and credentials; requests are made here, because its
 * typed serializer drops the fields of newer servers and its watch cannot tell silence from health.
 */
export class KubernetesClient {
  readonly #config: KubeConfig;
  readonly #login: Login;
  readonly #types = new Map<string, Promise<ResourceType[]>>();

  constructor(config: KubeConfig) {
    this.#config = config;
    this.#login = new Login(config);
  }

  get server(): string {
    const cluster = this.#config.getCurrentCluster();
    if (cluster === null) {
      throw new ApiError(400, "NoCluster", "the kubeconfig names no current cluster: set KUBECONFIG or a context");
    }
    return cluster.server;
  }

  /** The namespace of the kubeconfig's current context; in a Pod its own. */
  get namespace(): string {
    return this.#config.getContextObject(this.#config.getCurrentContext())?.namespace || "default";
  }

  /** Where `kind` is served, by discovery; known types are asked for once. @throws ApiError 404 when it is not */
  async resourceType(apiVersion: string, kind: string): Promise<ResourceType> {
    const builtIn = BUILT_IN.find((type) => type.kind === kind && type.apiVersion === apiVersion);
    if (builtIn !== undefined) return builtIn;
    const known = (await this.#discover(apiVersion)).find((type) => type.kind === kind);
    if (known !== undefined) return known;
    this.#types.delete(apiVersion); // it may be installed later
    throw new ApiError(
      404,
      "UnknownKind",
      `the API server does not serve ${kind} in ${apiVersion}: is its CRD installed?`,
    );
  }

  #discover(apiVersion: string): Promise<ResourceType[]> {
    let types = this.#types.get(apiVersion);
    if (types === undefined) {
      types = this.json<{ resources: { name: string; kind: string; namespaced: boolean }[] }>(
        "GET",
        groupVersionPath(apiVersion),
      ).then((list) =>
        list.resources
          .filter(({ name }) => !name.includes("/"))
          .map(({ name, kind, namespaced }) => ({ apiVersion, kind, plural: name, namespaced })),
      );
      types.catch(() => this.#types.delete(apiVersion));
      this.#types.set(apiVersion, types);
    }
    return types;
  }

  /** One object, or `undefined` when there is none of that name. */
  async get(type: ObjectType, name: string, namespace?: string): Promise<LiveObject | undefined> {
    const path = await this.#objectPath(type, name, namespace);
    return this.json<LiveObject>("GET", path).catch(undefinedWhenNotFound);
  }

  /** The object that a manifest names, or `undefined` when there is none. */
  find(object: ObjectType & { metadata: Pick<ObjectMeta, "name" | "namespace"> }): Promise<LiveObject | undefined> {
    const { name = "", namespace } = object.metadata;
    return this.get(object, name, namespace);
  }

  /** All objects of a type; `namespace` and `labelSelector` narrow it. */
  async list(type: ObjectType, options: ListOptions = {}): Promise<ListResult> {
    const result: ListResult = { items: [], resourceVersion: "" };
    for await (const { items, resourceVersion } of this.pages(type, options)) {
      result.items.push(...items);
      result.resourceVersion = resourceVersion;
    }
    return result;
  }

  /** What {@link list} gives, page by page. */
  async *pages(
    type: ObjectType,
    { namespace, labelSelector, metadataOnly = false, signal }: ListOptions & { metadataOnly?: boolean } = {},
  ): AsyncGenerator<ListResult> {
    const path = await this.#collectionPath(type, namespace);
    let next: string | undefined;
    do {
      const page = await this.json<{
        metadata: { resourceVersion: string; continue?: string };
        items: LiveObject[] | null;
      }>("GET", path, {
        query: { labelSelector, limit: PAGE_SIZE, continue: next },
        ...(metadataOnly && { accept: METADATA_ONLY }),
        signal,
      });
      // Lists leave out what they say once for all items; of metadata alone, an empty one is `null`.
      const items = (page.items ?? []).map((item) => ({ ...item, apiVersion: type.apiVersion, kind: type.kind }));
      yield { items, resourceVersion: page.metadata.resourceVersion };
      next = page.metadata.continue || undefined;
    } while (next !== undefined);
  }

  /** Creates an object; the API server completes `generateName`. */
  async create(manifest: Manifest, options: { signal?: AbortSignal } = {}): Promise<LiveObject> {
    return this.json<LiveObject>("POST", await this.#collectionPath(manifest, manifest.metadata.namespace), {
      query: { fieldManager: FIELD_MANAGER },
      body: manifest,
      ...options,
    });
  }

  /**
   * Server-side apply: sets the fields of `manifest`, removes those that `fieldManager` set earlier and no longer
   * names, leaves everyone else's. Creates the object when it does not exist; `created` says so.
   */
  async apply(
    manifest: Manifest,
    options: { fieldManager?: string; dryRun?: boolean } = {},
  ): Promise<{ object: LiveObject; created: boolean }> {
    const { name, namespace } = manifest.metadata;
    if (name === undefined) throw new TypeError("server-side apply needs metadata.name");
    const { status, body } = await this.send("PATCH", await this.#objectPath(manifest, name, namespace), {
      query: {
        fieldManager: options.fieldManager ?? FIELD_MANAGER,
        force: "true",
        dryRun: options.dryRun ? "All" : undefined,
      },
      body: manifest,
      contentType: "application/apply-patch+yaml",
    }).catch((error: unknown) => {
      throw error instanceof ApiError && OTHER_UID.test(error.message) ? anotherObject(manifest, name) : error;
    });
    return { object: body as LiveObject, created: status === 201 };
  }

  /**
   * Replaces the status of exactly this object. An apply or a merge would be done to a successor of its name as well: for a
   * status the API server does not look at the UID.
   *
   * @throws ApiError as {@link patchExactly}
   */
  replaceStatus(object: LiveObject, status: object): Promise<LiveObject> {
    return this.patchExactly(object, [{ op: "add", path: "/status", value: status }], "/status");
  }

  /**
   * A JSON patch (RFC 6902) of this object and of no successor of its name.
   *
   * @param subresource as it stands in a path, such as `/status`
   * @throws ApiError with the status 409 when the object of that name is another one by now, 422 when the patch does not
   * fit what it is
   */
  async patchExactly(object: LiveObject, operations: readonly object[], subresource = ""): Promise<LiveObject> {
    const { name, namespace, uid } = object.metadata;
    const path = (await this.#objectPath(object, name, namespace)) + subresource;
    try {
      return await this.json<LiveObject>("PATCH", path, {
        query: { fieldManager: FIELD_MANAGER },
        body: [{ op: "test", path: "/metadata/uid", value: uid }, ...operations],
        contentType: "application/json-patch+json",
      });
    } catch (error) {
      // The answer to a test that fails does not say so.
      if (!(error instanceof ApiError && error.status === 422)) throw error;
      const live = await this.find(object);
      throw live?.metadata.uid === uid ? error : anotherObject(object, name);
    }
  }

  /** A JSON merge patch (RFC 7396); with `metadata.resourceVersion` in it, refused when the object changed meanwhile. */
  async mergePatch(
    type: ObjectType,
    name: string,
    namespace: string | undefined,
    patch: object,
    options: { signal?: AbortSignal } = {},
  ): Promise<LiveObject> {
    return this.json<LiveObject>("PATCH", await this.#objectPath(type, name, namespace), {
      query: { fieldManager: FIELD_MANAGER },
      body: patch,
      contentType: "application/merge-patch+json",
      ...options,
    });
  }

  /** Asks for deletion; `undefined` when it was gone already. `uid` guards against deleting a successor of that name. */
  async delete(
    type: ObjectType,
    name: string,
    namespace?: string,
    options: { uid?: string; propagationPolicy?: "Background" | "Foreground" } = {},
  ): Promise<LiveObject | undefined> {
    return this.json<LiveObject>("DELETE", await this.#objectPath(type, name, namespace), {
      body: {
        kind: "DeleteOptions",
        apiVersion: "v1",
        propagationPolicy: options.propagationPolicy ?? "Background",
        ...(options.uid !== undefined && { preconditions: { uid: options.uid } }),
      },
    }).catch(undefinedWhenNotFound);
  }

  /**
   * A watch's raw response: newline-delimited JSON until the server ends it. The caller reads, times and aborts it.
   *
   * @throws ApiError when the server refuses, with status 410 when `resourceVersion` is too old
   */
  async watch(
    type: ObjectType,
    options: {
      resourceVersion: string;
      timeoutSeconds: number;
      labelSelector?: string | undefined;
      namespace?: string;
      signal: AbortSignal;
    },
  ): Promise<AsyncIterable<Uint8Array>> {
    const query = {
      watch: "true",
      allowWatchBookmarks: "true",
      resourceVersion: options.resourceVersion,
      timeoutSeconds: String(options.timeoutSeconds),
      labelSelector: options.labelSelector,
    };
    const { signal } = options;
    const path = await this.#collectionPath(type, options.namespace);
    const response = await this.#request("GET", path, { query, signal }, ENDLESS);
    if (response.statusCode < 400) return response.body;
    throw errorOf(response.statusCode, await this.#unlessSilent(signal, response.body.text()));
  }

  async json<T>(method: Dispatcher.HttpMethod, path: string, options: RequestArguments = {}): Promise<T> {
    return (await this.send(method, path, options)).body as T;
  }

  /**
   * One request and its parsed answer.
   *
   * @throws ApiError for a refusal, RetryableError-like ApiError 0 for no answer; what the fence of the work that asks
   * throws, for a write, and at its end
   */
  async send(
    method: Dispatcher.HttpMethod,
    path: string,
    options: RequestArguments = {},
  ): Promise<{ status: number; body: unknown }> {
    const signals = [options.signal, currentFence()?.signal].filter((signal) => signal !== undefined);
    const signal = signals.length > 1 ? AbortSignal.any(signals) : signals[0];
    const response = await this.#request(method, path, { ...options, signal }, REQUEST_TIMEOUT_MS);
    const text = await this.#unlessSilent(signal, response.body.text());
    if (response.statusCode >= 400) throw errorOf(response.statusCode, text);
    return { status: response.statusCode, body: text.startsWith("{") ? JSON.parse(text) : text };
  }

  /** @param silenceMs how long the API server may take to begin its answer, and be silent in the middle of it */
  async #request(
    method: Dispatcher.HttpMethod,
    path: string,
    { query = {}, body, contentType = "application/json", accept = "application/json", signal }: RequestArguments,
    silenceMs: number,
  ): Promise<Dispatcher.ResponseData> {
    const { dispatcher, headers } = await this.#login.access();
    const url = new URL(this.server.replace(/\/$/, "") + path);
    for (const [key, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(key, value);
    if (method !== "GET") checkFence();
    const answer = request(url, {
      method,
      dispatcher,
      headers: {
        ...headers,
        accept,
        "user-agent": "kindstack",
        ...(body !== undefined && { "content-type": contentType }),
      },
      body: body === undefined ? null : yamlSafeJson(body),
      reset: false, // a DELETE with a body is taken for the last request of its connection otherwise
      headersTimeout: silenceMs,
      bodyTimeout: silenceMs,
      ...(signal && { signal }),
    });
    return this.#unlessSilent(signal, answer);
  }

  /** @throws ApiError 0 when there is no answer, or not all of it */
  async #unlessSilent<T>(signal: AbortSignal | undefined, answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } catch (error) {
      if (signal?.aborted) throw error;
      const { message, code } = error as { code?: string; message?: string };
      throw new ApiError(0, "Unreachable", `the API server at ${this.server} did not answer: ${message || code}`);
    }
  }

  async #collectionPath({ apiVersion, kind }: ObjectType, namespace: string | undefined): Promise<string> {
    const { plural, namespaced } = await this.resourceType(apiVersion, kind);
    const scope = namespaced && namespace !== undefined ? `/namespaces/${encodeURIComponent(namespace)}` : "";
    return `${groupVersionPath(apiVersion)}${scope}/${plural}`;
  }

  async #objectPath({ apiVersion, kind }: ObjectType, name: string, namespace: string | undefined): Promise<string> {
    const { namespaced } = await this.resourceType(apiVersion, kind);
    if (namespaced && !namespace) throw new TypeError(`${kind} ${name} needs a namespace`);
    return `${await this.#collectionPath({ apiVersion, kind }, namespace)}/${encodeURIComponent(name)}`;
  }

  close(): Promise<void> {
    return this.#login.close();
  }
}

/** What the API server says of an apply that names the UID of a predecessor. */
const OTHER_UID = /metadata\.uid: Invalid value/;

function anotherObject({ kind }: ObjectType, name: string): ApiError {
  return new ApiError(409, "Conflict", `${kind} ${name} is another object by now`);
}

/** Server-side apply reads JSON as YAML, which refuses characters that JSON need not escape. */
function yamlSafeJson(body: unknown): string {
  return JSON.stringify(body).replace(
    /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function groupVersionPath(apiVersion: string): string {
  return apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
}

function errorOf(statusCode: number, text: string): ApiError {
  try {
    const status = JSON.parse(text) as { reason?: string; message?: string };
    return new ApiError(statusCode, status.reason || `Http${statusCode}`, status.message ?? text);
  } catch {
    return new ApiError(statusCode, `Http${statusCode}`, text.slice(0, 1000));
  }
}

function undefinedWhenNotFound(error: unknown): undefined {
  if (error instanceof ApiError && error.notFound) return undefined;
  throw error;
}

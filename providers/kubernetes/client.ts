import type { KubeConfig } from "@kubernetes/client-node";
import { invalidProgram } from "../errors";
import type { Fence } from "../fence";
import { ApiError, ApiServer, isApiError } from "./api-server";
import { MESSAGES } from "./messages";
import { groupVersionPath, ResourceTypes } from "./resource-types";
import { unknownKind } from "./type-absence";
import type { LiveObject, Manifest, ObjectMeta, ObjectType, ResourceType } from "./types";
import { known, type Lookup } from "./types";

export { ApiError, isApiError } from "./api-server";
export type * from "./types";
export { known, type Lookup } from "./types";

export interface ListResult {
  items: LiveObject[];
  resourceVersion: string;
}

interface ListOptions {
  namespace?: string | undefined;
  labelSelector?: string | undefined;
  signal?: AbortSignal | undefined;
  /** Without spec, status and data. */
  metadataOnly?: boolean | undefined;
}

interface WatchOptions extends ListOptions {
  fieldSelector?: string;
  signal: AbortSignal;
  resourceVersion: string;
  timeoutSeconds: number;
}

interface WriteOptions {
  signal?: AbortSignal;
  fieldManager?: string;
}

/** The field manager of everything that Kindstack applies. */
export const FIELD_MANAGER = "kindstack";

/** A version that no object has: the largest. */
const NO_VERSION = "9223372036854775807";
const PAGE_SIZE = "500";
const METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

export class KubernetesClient extends ApiServer {
  readonly #types: ResourceTypes;

  constructor(of: KubeConfig | KubernetesClient, fence?: Fence, isPatient?: boolean) {
    super(of, fence, isPatient);
    this.#types = of instanceof KubernetesClient ? of.#types : new ResourceTypes(this);
  }

  /** A client with the rights of a bearer token, at the same API server; the caller closes it. */
  ofToken(token: string): KubernetesClient {
    return new KubernetesClient(this.configOf({ name: "token", token }));
  }

  /** This client for work under a fence: writes are refused when its right has ended, and requests end with it. */
  within(fence: Fence): KubernetesClient {
    return new KubernetesClient(this, fence);
  }

  /** This client for a command, which nothing runs again: it repeats requests that a busy API server puts off. */
  patient(): KubernetesClient {
    return new KubernetesClient(this, undefined, true);
  }

  /** The same for all clients {@link within} a fence that are of one client. */
  get shared(): object {
    return this.#types;
  }

  /** Where `kind` is served; known types are asked for once. @throws ApiError 404 when it is not */
  resourceType(apiVersion: string, kind: string): Promise<ResourceType> {
    return this.#types.resourceType(apiVersion, kind);
  }

  /**
   * One object. Where its type is not served in the version asked for, it is looked for in the other versions of the group, and
   * found with the `apiVersion` of one of these.
   */
  async get(type: ObjectType, name: string, namespace?: string): Promise<Lookup> {
    try {
      return await this.#read(type, name, namespace).catch(async (error: unknown): Promise<Lookup> => {
        if (!isUnknownKind(error)) throw error;
        const [other] = await this.#types.elsewhere(type);
        return other === undefined ? { outcome: "absent" } : this.#read(other, name, namespace);
      });
    } catch (error) {
      return { outcome: "unknown", error };
    }
  }

  /** The object that a manifest names; see {@link get}. */
  find(object: ObjectType & { metadata: Pick<ObjectMeta, "name" | "namespace"> }): Promise<Lookup> {
    const { name = "", namespace } = object.metadata;
    return this.get(object, name, namespace);
  }

  async #read(type: ObjectType, name: string, namespace: string | undefined): Promise<Lookup> {
    try {
      const path = await this.#path(type, namespace, name);
      return { outcome: "found", object: await this.#ofType(type, this.json<LiveObject>("GET", path)) };
    } catch (error) {
      if (isAbsent(error, name)) return { outcome: "absent" };
      throw error;
    }
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

  /**
   * All objects of a type; where its version is not served, in another one of its group, named as those of the type.
   *
   * @throws ApiError `UnknownKind` when objects can exist that no version shows
   */
  async listInAnyVersion(type: ObjectType, options: ListOptions = {}): Promise<LiveObject[]> {
    try {
      return (await this.list(type, options)).items;
    } catch (error) {
      if (!isUnknownKind(error)) throw error;
      const [other] = await this.#types.elsewhere(type);
      const items = other === undefined ? [] : (await this.list(other, options)).items;
      return items.map((object) => ({ ...object, apiVersion: type.apiVersion }));
    }
  }

  async *pages(
    type: ObjectType,
    { namespace, labelSelector, metadataOnly = false, signal }: ListOptions = {},
  ): AsyncGenerator<ListResult> {
    const path = await this.#path(type, namespace);
    let next: string | undefined;
    do {
      const asked = this.json<{
        metadata: { resourceVersion: string; continue?: string };
        items: LiveObject[] | null;
      }>("GET", path, {
        query: { labelSelector, limit: PAGE_SIZE, continue: next },
        ...(metadataOnly && { accept: METADATA_LIST }),
        signal,
      });
      const page = await this.#ofType(type, asked);
      // Lists leave out what they say once for all items; of metadata alone, an empty one is `null`.
      const items = (page.items ?? []).map((item) => ({ ...item, apiVersion: type.apiVersion, kind: type.kind }));
      yield { items, resourceVersion: page.metadata.resourceVersion };
      next = page.metadata.continue || undefined;
    } while (next !== undefined);
  }

  /** The newest version of all objects that the API server has of a type's store: one object is listed at most. */
  async revision(type: ObjectType, { signal }: Pick<ListOptions, "signal"> = {}): Promise<string> {
    const page = await this.json<{ metadata: { resourceVersion: string } }>("GET", await this.#path(type, undefined), {
      query: { limit: "1" },
      accept: METADATA_LIST,
      signal,
    });
    return page.metadata.resourceVersion;
  }

  /** Creates an object; the API server completes `generateName`. */
  async create(manifest: Manifest, { signal, fieldManager = FIELD_MANAGER }: WriteOptions = {}): Promise<LiveObject> {
    const path = await this.#path(manifest, manifest.metadata.namespace);
    const query = { fieldManager };
    return this.#ofType(manifest, this.json<LiveObject>("POST", path, { query, body: manifest, signal }));
  }

  /**
   * Server-side apply: sets the fields of `manifest`, removes those that `fieldManager` set earlier and no longer
   * names, leaves everyone else's. Creates the object when it does not exist; `created` says so.
   */
  async apply(
    manifest: Manifest,
    { fieldManager = FIELD_MANAGER, dryRun = false, signal }: WriteOptions & { dryRun?: boolean } = {},
  ): Promise<{ object: LiveObject; created: boolean }> {
    const { name, namespace } = manifest.metadata;
    if (name === undefined) throw new TypeError("server-side apply needs metadata.name");
    const sent = this.send("PATCH", await this.#path(manifest, namespace, name), {
      query: { fieldManager, force: "true", dryRun: dryRun ? "All" : undefined },
      body: manifest,
      contentType: "application/apply-patch+yaml",
      signal,
    });
    const { status, body } = await this.#ofType(manifest, sent).catch((error: unknown) => {
      throw error instanceof ApiError && MESSAGES.otherUid.test(error.message) ? anotherObject(manifest, name) : error;
    });
    return { object: body as LiveObject, created: status === 201 };
  }

  /**
   * Creates an object by server-side apply, and leaves one that has its name as it is. The API server compares versions before all
   * else, and only with an object that is there.
   *
   * @throws ApiError 409 when something has its name
   */
  async applyNew(manifest: Manifest, options: WriteOptions = {}): Promise<LiveObject> {
    const metadata = { ...manifest.metadata, resourceVersion: NO_VERSION };
    return (await this.apply({ ...manifest, metadata }, options)).object;
  }

  /**
   * Replaces the status of exactly this object. An apply or a merge would be done to a successor of its name as well: for a
   * status the API server does not look at the UID.
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
    const path = (await this.#path(object, namespace, name)) + subresource;
    try {
      return await this.json<LiveObject>("PATCH", path, {
        query: { fieldManager: FIELD_MANAGER },
        body: [{ op: "test", path: "/metadata/uid", value: uid }, ...operations],
        contentType: "application/json-patch+json",
      });
    } catch (error) {
      // The answer to a test that fails does not say so.
      if (!isApiError(error, 422)) throw error;
      const live = await known(this.find(object));
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
    const sent = this.json<LiveObject>("PATCH", await this.#path(type, namespace, name), {
      query: { fieldManager: FIELD_MANAGER },
      body: patch,
      contentType: "application/merge-patch+json",
      ...options,
    });
    return this.#ofType(type, sent);
  }

  /**
   * Asks for deletion; `undefined` when it was gone already. `uid` guards against deleting a successor of that name,
   * `resourceVersion` against deleting what has changed.
   */
  async delete(
    type: ObjectType,
    name: string,
    namespace?: string,
    {
      uid,
      resourceVersion,
      propagationPolicy = "Background",
    }: {
      uid?: string;
      resourceVersion?: string;
      propagationPolicy?: "Background" | "Foreground";
    } = {},
  ): Promise<LiveObject | undefined> {
    const preconditions = uid === undefined ? undefined : { uid, resourceVersion };
    const sent = this.json<LiveObject>("DELETE", await this.#path(type, namespace, name), {
      body: { apiVersion: "v1", kind: "DeleteOptions", propagationPolicy, preconditions },
    });
    return this.#ofType(type, sent).catch((error: unknown) => {
      if (isAbsent(error, name)) return undefined;
      throw error;
    });
  }

  /**
   * A watch's raw response: newline-delimited JSON until the server ends it. The caller reads, times and aborts it.
   *
   * @throws ApiError when the server refuses, with status 410 when `resourceVersion` is too old
   */
  async watch(
    type: ObjectType,
    { namespace, signal, timeoutSeconds, metadataOnly = false, ...selection }: WatchOptions,
  ): Promise<AsyncIterable<Uint8Array>> {
    const asked = this.stream(await this.#path(type, namespace), {
      query: { watch: "true", allowWatchBookmarks: "true", timeoutSeconds: String(timeoutSeconds), ...selection },
      ...(metadataOnly && { accept: METADATA }),
      signal,
    });
    return this.#ofType(type, asked);
  }

  /**
   * The answer about objects of a type.
   *
   * @throws ApiError `UnknownKind` when the API server does not know the path, though discovery had the type
   */
  async #ofType<T>(type: ObjectType, answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } catch (error) {
      if (!isApiError(error, 404) || error.absent !== undefined) throw error;
      this.#types.forget(type.apiVersion);
      throw unknownKind(type);
    }
  }

  async #path({ apiVersion, kind }: ObjectType, namespace: string | undefined, name?: string): Promise<string> {
    const { plural, namespaced } = await this.resourceType(apiVersion, kind);
    if (namespaced && name !== undefined && !namespace) throw invalidProgram(`${kind} ${name} needs a namespace`);
    const scope = namespaced && namespace !== undefined ? `/namespaces/${encodeURIComponent(namespace)}` : "";
    const object = name === undefined ? "" : `/${encodeURIComponent(name)}`;
    return `${groupVersionPath(apiVersion)}${scope}/${plural}${object}`;
  }
}

function isAbsent(error: unknown, name: string): boolean {
  return isApiError(error, 404) && error.absent === name;
}

export function isUnknownKind(error: unknown): error is ApiError {
  return isApiError(error, 404) && error.reason === "UnknownKind";
}

function anotherObject({ kind }: ObjectType, name: string): ApiError {
  return new ApiError(409, "Conflict", `${kind} ${name} is another object by now`);
}

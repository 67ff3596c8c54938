import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { Output } from "@pulumi/pulumi/output";
import type { CustomResourceOptions } from "@pulumi/pulumi/resource";
import { DynamicResource, defineProvider, PROVIDER_PROPERTY } from "../dynamic";
import { PendingError, RetryableError, TerminalError } from "../errors";
import { mayWait } from "../fence";
import type { CheckFailure, DiffResult, DynamicProvider, Properties } from "../provider";
import { ApiError, type KubernetesClient, type LiveObject, type Manifest } from "./client";
import { connectKubernetes } from "./connection";
import {
  CREATED_ANNOTATION,
  OWNER_ANNOTATION,
  OWNER_UID_LABEL,
  type Owner,
  ownedFieldsDigest,
  ownerUidOf,
  wasCreated,
} from "./ownership";
import { refuseProtectedNamespace } from "./protected-namespaces";
import { describeTermination, referenceTo } from "./termination";

/** What a program gives for one Kubernetes object. */
export interface ObjectInputs {
  /** The fields to be applied; everything else in the live object is left to others. */
  manifest: Manifest;
  /** For whom the object is; another owner's object is refused. */
  owner: Owner;
  /**
   * What is done with an object that exists already and is unmanaged: it is adopted, or with `false` refused. With
   * `"replace"` it is deleted, whatever its finalizers, so that no field of it stays.
   */
  adopt?: boolean | "replace";
  /**
   * `true` never creates the object nor deletes it, and leaves one that is on its way out alone. It is released, unless
   * the garbage collector is about to take it along with an owner that the manifest names.
   */
  existing?: boolean;
  /**
   * With `existing`: a label of the manifest. Users give the object to its owner with it. An object with neither this label
   * nor an owner reference of the manifest was released, and is left as it is.
   */
  givenBy?: string;
  /** What a new object is created with, for fields that another manager has in its keeping from then on. */
  initial?: { manifest: Manifest; fieldManager: string };
  /** `false` takes a deletion for done as soon as the API server has accepted it. */
  awaitDeletion?: boolean;
}

/** What the state records of one Kubernetes object. */
export interface ObjectOutputs extends ObjectInputs {
  uid: string;
  /** The version that the last apply left; what a watch shows with a lower one is older than the apply. */
  resourceVersion: string;
  /** `false` for an object that existed before: it is released, not deleted. */
  created: boolean;
  /** See {@link ownedFieldsDigest}. */
  fields: string;
  /** Set by a refresh that found applied fields changed. */
  drifted: boolean;
}

/**
 * One Kubernetes object, made and kept by server-side apply.
 *
 * An object that exists already is adopted: Kindstack's fields are put on it, everything else in it stays, and
 * deleting the resource takes those fields off again. Only what Kindstack created is deleted.
 */
export class KubernetesObject extends DynamicResource {
  declare readonly manifest: Output<Manifest>;
  declare readonly uid: Output<string>;
  declare readonly created: Output<boolean>;

  constructor(name: string, inputs: ObjectInputs, options?: CustomResourceOptions) {
    super(
      { module: "kubernetes", name: inputs.manifest.kind, stub: OBJECT_STUB },
      name,
      { ...inputs, uid: undefined, resourceVersion: undefined, created: undefined, fields: undefined },
      options,
    );
  }
}

/** Whether a resource's outputs are those of a Kubernetes object, as an engine's events show them. */
export function isObjectOutputs(outputs: Properties): outputs is Properties & ObjectOutputs {
  return (
    outputs[PROVIDER_PROPERTY] === OBJECT_STUB && typeof outputs.fields === "string" && isManifest(outputs.manifest)
  );
}

/** The Kubernetes objects among resources, as the state records them. */
export function objectsAmong(resources: readonly { outputs: Properties }[]): ObjectOutputs[] {
  return resources.flatMap(({ outputs }) => (isObjectOutputs(outputs) ? [outputs] : []));
}

/** Whether the manifest can be read: one that is a secret as a whole cannot. */
function isManifest(value: unknown): value is Manifest {
  return typeof (value as Partial<Manifest> | undefined)?.metadata?.name === "string";
}

const GONE_TIMEOUT_MS = 120_000;

const objects: DynamicProvider<ObjectInputs, ObjectOutputs> = {
  async check(_olds, news) {
    const failures: CheckFailure[] = [];
    const manifest = news.manifest as Partial<Manifest> | undefined;
    for (const field of ["apiVersion", "kind"] as const) {
      if (!manifest?.[field]) failures.push({ property: `manifest.${field}`, reason: "is required" });
    }
    if (!manifest?.metadata?.name) failures.push({ property: "manifest.metadata.name", reason: "is required" });
    if (!(news.owner as Partial<Owner> | undefined)?.uid) {
      failures.push({ property: "owner.uid", reason: "is required" });
    }
    return { inputs: news, failures };
  },

  async diff(_id, olds, news): Promise<DiffResult> {
    // Not known while what the object depends on is replaced first, in states that take all inputs to be made of that.
    if (typeof news.manifest !== "object") return { changes: true };
    if (identity(olds.manifest) !== identity(news.manifest)) return { changes: true, replaces: ["manifest"] };
    if (changesImmutableField(olds.manifest, news.manifest)) {
      return { changes: true, replaces: ["manifest"], deleteBeforeReplace: true };
    }
    return {
      changes:
        olds.drifted || !isDeepStrictEqual(olds.manifest, news.manifest) || !isDeepStrictEqual(olds.owner, news.owner),
    };
  },

  async create(inputs) {
    const outs = await applyObject(inputs, [inputs.owner.uid]);
    return { id: identity(inputs.manifest), outs };
  },

  async read(id, outs) {
    const live = await connectKubernetes().find(outs.manifest);
    // What is being deleted is as good as gone: it cannot be repaired, only created again.
    if (live === undefined || live.metadata.deletionTimestamp) return {};
    const drifted = live.metadata.uid !== outs.uid || ownedFieldsDigest(live) !== outs.fields;
    return { id, props: { ...outs, drifted } };
  },

  async update(_id, olds, news) {
    return { outs: await applyObject(news, [news.owner.uid, olds.owner.uid]) };
  },

  async delete(_id, outs) {
    const client = connectKubernetes();
    const live = await client.find(outs.manifest);
    if (live === undefined || !isStillOurs(live, outs)) return; // gone, or another owner's by now
    if (outs.existing) {
      if (live.metadata.deletionTimestamp) return; // it goes, and is known by its labels until then
      if (!(await goesWithItsOwner(client, outs.manifest))) await relinquish(client, outs.manifest, live);
    } else if (outs.created && wasCreated(live)) {
      await deleteObject(client, live);
      if (outs.awaitDeletion !== false) await untilGone(client, live);
    } else {
      await relinquish(client, outs.manifest, live);
    }
  },

  async release(_id, outs) {
    const client = connectKubernetes();
    const live = await client.find(outs.manifest);
    if (live !== undefined && isStillOurs(live, outs)) await makeUnmanaged(client, outs.manifest, live);
  },
};

export const { stub: OBJECT_STUB, provider } = defineProvider("kindstack/providers/kubernetes/object", objects);

/**
 * Removes what an owner has and no state knows, as the deletion of its resource would: what existed before is only given
 * up. That it is gone is not waited for.
 *
 * @param options with `release`, it is kept, unmanaged
 */
export async function removeOrphan(live: LiveObject, { release }: { release: boolean }): Promise<void> {
  const { apiVersion, kind, metadata } = live;
  const { name, namespace, resourceVersion, ownerReferences = [], annotations = {} } = metadata;
  const owner = { uid: ownerUidOf(live) ?? "", description: annotations[OWNER_ANNOTATION] ?? "" };
  const manifest = { apiVersion, kind, metadata: { name, ...(namespace !== undefined && { namespace }) } };
  if (release) {
    await connectKubernetes().mergePatch(live, name, namespace, {
      metadata: {
        resourceVersion,
        labels: { [OWNER_UID_LABEL]: null },
        annotations: { [OWNER_ANNOTATION]: null, [CREATED_ANNOTATION]: null },
        ownerReferences: ownerReferences.filter(({ uid }) => uid !== owner.uid),
      },
    });
    return;
  }
  await provider.delete(identity(manifest), {
    manifest,
    owner,
    awaitDeletion: false,
    uid: "", // only the mark on it makes it ours
    resourceVersion,
    created: wasCreated(live),
    fields: ownedFieldsDigest(live),
    drifted: false,
  });
}

/** How often an object that others change at the same time is looked at. */
const MOST_LOOKS = 5;

/** Applies the object; one that is given by a label only in the version that showed the label. @throws {@link applyAsSeen} */
async function applyObject(inputs: ObjectInputs, owners: string[]): Promise<ObjectOutputs> {
  for (let look = 1; ; look++) {
    try {
      return await applyAsSeen(inputs, owners);
    } catch (error) {
      const isChanged = error instanceof ApiError && error.status === 409;
      if (inputs.givenBy === undefined || !isChanged || look === MOST_LOOKS) throw error;
    }
  }
}

/** Makes or mends the object. @throws TerminalError when an owner other than `owners` holds it, or it is protected */
async function applyAsSeen(inputs: ObjectInputs, owners: string[]): Promise<ObjectOutputs> {
  // Kinds refuse these by their fields; none is accepted here, whatever the kind and the user.
  if (typeName(inputs.manifest) === "v1/Namespace") {
    refuseProtectedNamespace(inputs.manifest.metadata.name ?? "", "metadata.name");
  }
  const client = connectKubernetes();
  let live = await client.find(inputs.manifest);
  if (inputs.existing && (live === undefined || live.metadata.deletionTimestamp)) {
    const { kind, metadata } = inputs.manifest;
    throw new RetryableError("Gone", `${kind} ${metadata.name} is ${live ? "being deleted" : "not there any more"}`);
  }
  if (live !== undefined && inputs.givenBy !== undefined && !isGiven(live, inputs.manifest, inputs.givenBy)) {
    throw new RetryableError(
      "Gone",
      `${live.kind} ${live.metadata.name} was released: its label ${inputs.givenBy} is gone`,
    );
  }
  if (live !== undefined && inputs.adopt === "replace" && ownerUidOf(live) === undefined) {
    await removeUnmanaged(client, live);
    live = undefined;
  }
  if (live?.metadata.deletionTimestamp) {
    if (grantsRights(live) && describeConflict(live, owners, true) === undefined) {
      await applyRights(client, inputs, live);
    }
    await untilGone(client, live);
    live = undefined;
  }
  if (live !== undefined) refuseForeign(live, owners, inputs.adopt !== false);
  if (live !== undefined && mustBeReplaced(live, inputs.manifest, owners)) {
    await deleteObject(client, live);
    await untilGone(client, live);
    live = undefined;
  }
  if (live === undefined && inputs.initial !== undefined) live = await createInitial(client, inputs);
  let result = await client.apply(marked(inputs, live, live === undefined || wasCreated(live)));
  if (live === undefined && !result.created) {
    // Another client made it between the look and the apply: it is theirs, and only adopted.
    result = await client.apply(marked(inputs, result.object, false));
  }
  const { object } = result;
  return {
    manifest: inputs.manifest,
    owner: inputs.owner,
    ...(inputs.existing && { existing: true }),
    ...(inputs.awaitDeletion === false && { awaitDeletion: false }),
    uid: object.metadata.uid,
    resourceVersion: object.metadata.resourceVersion,
    created: wasCreated(object),
    fields: ownedFieldsDigest(object),
    drifted: false,
  };
}

/** Creates the object with what another manager is to keep. When another client was faster, its object is adopted. */
async function createInitial(client: KubernetesClient, { initial, ...inputs }: ObjectInputs): Promise<LiveObject> {
  const { manifest, fieldManager } = initial as NonNullable<ObjectInputs["initial"]>;
  const { object, created } = await client.apply(marked({ ...inputs, manifest }, undefined, true), {
    fieldManager,
  });
  if (created) return object;
  return (await client.apply(marked({ ...inputs, manifest }, object, false), { fieldManager })).object;
}

/** Whether a label, or an owner reference, still says that an object is the owner's. */
function isGiven({ metadata }: LiveObject, manifest: Manifest, label: string): boolean {
  const { labels, ownerReferences: owners = [] } = manifest.metadata;
  const isOwned = metadata.ownerReferences?.some(({ uid }) => owners.some((owner) => owner.uid === uid)) ?? false;
  return isOwned || metadata.labels?.[label] === labels?.[label];
}

/** The manifest with the marks of ownership; bound to the UID of what was seen, so that no successor is overwritten. */
function marked({ manifest, owner, givenBy }: ObjectInputs, live: LiveObject | undefined, created: boolean): Manifest {
  return {
    ...manifest,
    metadata: {
      ...manifest.metadata,
      ...(live !== undefined && { uid: live.metadata.uid }),
      ...(live !== undefined && givenBy !== undefined && { resourceVersion: live.metadata.resourceVersion }),
      labels: { ...manifest.metadata.labels, [OWNER_UID_LABEL]: owner.uid },
      annotations: {
        ...manifest.metadata.annotations,
        [OWNER_ANNOTATION]: owner.description,
        ...(created && { [CREATED_ANNOTATION]: "true" }),
      },
    },
  };
}

/** Taking off the label alone makes the object neither another one nor the user's. */
function isStillOurs(live: LiveObject, outs: ObjectOutputs): boolean {
  const holder = ownerUidOf(live);
  return holder === undefined ? live.metadata.uid === outs.uid : holder === outs.owner.uid;
}

/** Deletes what is not managed, and was made under a name that is reserved; its finalizers would keep it. */
async function removeUnmanaged(client: KubernetesClient, live: LiveObject): Promise<void> {
  const { name, namespace, uid, finalizers = [] } = live.metadata;
  if (finalizers.length > 0) await client.mergePatch(live, name, namespace, { metadata: { uid, finalizers: null } });
  await client.delete(live, name, namespace, { uid });
}

function refuseForeign(live: LiveObject, owners: string[], adopt: boolean): void {
  const conflict = describeConflict(live, owners, adopt);
  if (conflict !== undefined) throw new TerminalError("Conflict", conflict, { object: referenceTo(live) });
}

/** Why a live object is refused to these owners with `Conflict`; `undefined` when it is not. */
export function describeConflict(live: LiveObject, owners: readonly string[], adopt: boolean): string | undefined {
  const holder = ownerUidOf(live);
  if (holder === undefined && !adopt) return `${live.kind} ${live.metadata.name} exists already and is not adopted`;
  if (holder === undefined || owners.includes(holder)) return undefined;
  const description = live.metadata.annotations?.[OWNER_ANNOTATION] ?? `the owner with UID ${holder}`;
  return `${live.kind} ${live.metadata.name} belongs to ${description}; remove it there, or remove its label ${OWNER_UID_LABEL}`;
}

/** Takes Kindstack's fields off an adopted object; those that it cannot do without stay. */
async function relinquish(client: KubernetesClient, manifest: Manifest, live: LiveObject): Promise<void> {
  const { name, namespace, uid } = live.metadata;
  try {
    // Applying nothing removes every field that was ours alone. The UID keeps the apply from creating anything.
    await client.apply({
      apiVersion: manifest.apiVersion,
      kind: manifest.kind,
      metadata: { name, ...(namespace !== undefined && { namespace }), uid },
    });
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 422)) throw error;
    await makeUnmanaged(client, grantsRights(live) ? { ...manifest, subjects: [] } : manifest, live);
  }
}

/** Asks for the deletion of an object. Of one that a finalizer keeps, the rights that it grants end now. */
async function deleteObject(client: KubernetesClient, live: LiveObject): Promise<void> {
  const { name, namespace, uid, finalizers = [] } = live.metadata;
  if (grantsRights(live) && finalizers.length > 0) await revokeRights(client, live);
  const propagationPolicy = HAS_DEPENDENTS.has(typeName(live)) ? "Foreground" : "Background";
  await client.delete(live, name, namespace, { uid, propagationPolicy });
}

function grantsRights(object: Manifest): boolean {
  return typeName(object) === ROLE_BINDING;
}

/** What is being deleted grants rights until it is gone: those that it is to grant, or none if its role is another one. */
async function applyRights(client: KubernetesClient, inputs: ObjectInputs, live: LiveObject): Promise<void> {
  if (changesImmutableField(live, inputs.manifest)) await revokeRights(client, live);
  else await client.apply(marked(inputs, live, wasCreated(live)));
}

async function revokeRights(client: KubernetesClient, live: LiveObject): Promise<void> {
  try {
    await client.patchExactly(live, [{ op: "add", path: "/subjects", value: [] }]);
  } catch (error) {
    // Gone, another object by now, or of a role that we may not bind: its deletion is all that is left to do.
    if (!(error instanceof ApiError && [403, 404, 409].includes(error.status))) throw error;
  }
}

/**
 * Whether a live object differs in a field that cannot be changed: it was deleted and made again by hand. A RoleBinding is
 * then replaced also if it does not carry its owner's label any more: what it grants is the owner's to say.
 */
function mustBeReplaced(live: LiveObject, manifest: Manifest, owners: readonly string[]): boolean {
  const holder = ownerUidOf(live);
  const isOwners = holder === undefined ? grantsRights(live) : owners.includes(holder);
  return isOwners && typeName(live) !== POD && changesImmutableField(live, manifest);
}

/** Makes an object unmanaged: it is kept, without ownership labels and owner references. */
async function makeUnmanaged(client: KubernetesClient, manifest: Manifest, live: LiveObject): Promise<void> {
  const { ownerReferences: _, ...metadata } = manifest.metadata;
  await client.apply({ ...manifest, metadata: { ...metadata, uid: live.metadata.uid } });
}

/** Whether an owner that the manifest names is gone or on its way out, and does not leave its dependents behind. */
async function goesWithItsOwner(client: KubernetesClient, { metadata }: Manifest): Promise<boolean> {
  for (const { apiVersion, kind, name, uid } of metadata.ownerReferences ?? []) {
    const owner = await client.get({ apiVersion, kind }, name, metadata.namespace);
    if (owner?.metadata.uid !== uid) return true;
    if (owner.metadata.deletionTimestamp && !owner.metadata.finalizers?.includes("orphan")) return true;
  }
  return false;
}

/**
 * Returns when an object is gone whose deletion the API server has accepted.
 *
 * @throws PendingError at once where the call may not wait, RetryableError after 2 min where it may
 */
async function untilGone(client: KubernetesClient, object: LiveObject): Promise<void> {
  const deadline = performance.now() + GONE_TIMEOUT_MS;
  for (let wait = 50; ; wait = Math.min(wait * 1.5, 1000)) {
    const live = await client.find(object);
    if (live === undefined || live.metadata.uid !== object.metadata.uid) return;
    if (!mayWait()) {
      throw new PendingError("Terminating", await describeTermination(client, live), { object: referenceTo(live) });
    }
    if (performance.now() > deadline) throw new RetryableError("Terminating", await describeTermination(client, live));
    await delay(wait);
  }
}

/** The id of an object in the state: what cannot change without its becoming another object. */
function identity({ apiVersion, kind, metadata }: Manifest): string {
  const group = apiVersion.includes("/") ? apiVersion.split("/")[0] : "";
  return [group, kind, metadata.namespace ?? "", metadata.name].join("/");
}

const POD = "v1/Pod";
const ROLE_BINDING = "rbac.authorization.k8s.io/v1/RoleBinding";

/**
 * Fields that the API server does not let anyone change; a change of them needs another object. The server adds to none of
 * them but a Pod's.
 */
const IMMUTABLE_FIELDS: Readonly<Record<string, readonly string[]>> = {
  [POD]: ["spec"],
  "apps/v1/Deployment": ["spec.selector"],
  [ROLE_BINDING]: ["roleRef"],
  "v1/ResourceQuota": ["spec.scopes"],
};

/** Types whose objects make others: such an object is gone when those are. */
const HAS_DEPENDENTS: ReadonlySet<string> = new Set(["apps/v1/Deployment"]);

function typeName({ apiVersion, kind }: Manifest): string {
  return `${apiVersion}/${kind}`;
}

function changesImmutableField(olds: Manifest, news: Manifest): boolean {
  const paths = IMMUTABLE_FIELDS[typeName(news)] ?? [];
  return paths.some((path) => !isDeepStrictEqual(fieldAt(olds, path), fieldAt(news, path)));
}

function fieldAt(manifest: Manifest, path: string): unknown {
  return path
    .split(".")
    .reduce<unknown>((value, name) => (value as Record<string, unknown> | undefined)?.[name], manifest);
}

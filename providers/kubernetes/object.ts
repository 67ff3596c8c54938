import { isDeepStrictEqual } from "node:util";
import { Output, secret } from "@pulumi/pulumi/output";
import type { CustomResourceOptions } from "@pulumi/pulumi/resource";
import { DynamicResource, defineProvider, PROVIDER_PROPERTY } from "../dynamic";
import type { CheckFailure, DiffResult, DynamicProvider, Properties } from "../provider";
import type { DynamicResourceOptions } from "../resource-options";
import { applyObject } from "./apply-object";
import { connectKubernetes } from "./connection";
import { declareObject } from "./declared-objects";
import { deleteObject, endOfOwner, makeUnmanaged, relinquish, untilGone } from "./delete-object";
import { findFieldDrift } from "./field-drift";
import { differsIn, isRecord, parsePath } from "./field-path";
import { ignoredPaths, withoutIgnored } from "./ignored-fields";
import type { ManifestOf } from "./known-types";
import type { ObjectInputs, ObjectOutputs } from "./object-inputs";
import { grantsRights, groupOf, holdsData, isSecret, limitsNamespace, withStoredData } from "./object-types";
import {
  CREATED_ANNOTATION,
  OWNER_ANNOTATION,
  OWNER_UID_LABEL,
  ownedFieldsDigest,
  ownerUidOf,
  wasCreated,
} from "./ownership";
import { referenceTo } from "./termination";
import type { LiveObject, Manifest } from "./types";

/** The options of a resource. Its provider replaces, so that the object is deleted first and nothing with data is. */
export type ObjectOptions = DynamicResourceOptions & Pick<CustomResourceOptions, "replaceOnChanges">;

/** Inputs whose manifest the compiler checks by its type. */
type TypedInputs<ApiVersion extends string, Kind extends string> = Omit<ObjectInputs, "manifest"> & {
  manifest: ManifestOf<ApiVersion, Kind>;
};

/**
 * One Kubernetes object, made and kept by server-side apply.
 *
 * An object that exists already is adopted: Kindstack's fields are put on it, everything else in it stays, and
 * deleting the resource takes those fields off again. Only what Kindstack created is deleted.
 */
export class KubernetesObject<
  const ApiVersion extends string = string,
  const Kind extends string = string,
> extends DynamicResource {
  declare readonly manifest: Output<Manifest>;
  declare readonly uid: Output<string>;
  declare readonly created: Output<boolean>;

  /**
   * @param options with `replaceOnChanges`, as the input of that name, but paths may begin with `manifest.`
   * @throws TerminalError `InvalidProgram` where a kind's program may not declare it
   */
  constructor(
    name: string,
    typed: TypedInputs<ApiVersion, Kind>,
    { replaceOnChanges, ...options }: ObjectOptions = {},
  ) {
    const inputs = typed as ObjectInputs;
    declareObject(name, inputs.manifest);
    const paths = replaceOnChanges?.map((path) => path.replace(/^manifest\./, ""));
    super(
      { module: "kubernetes", name: inputs.manifest.kind, stub: OBJECT_STUB },
      name,
      {
        ...inputs,
        manifest: withSecretValues(inputs.manifest),
        ...(inputs.initial && {
          initial: { ...inputs.initial, manifest: withSecretValues(inputs.initial.manifest) },
        }),
        ...(paths && { replaceOnChanges: [...(inputs.replaceOnChanges ?? []), ...paths] }),
        uid: undefined,
        resourceVersion: undefined,
        created: undefined,
        fields: undefined,
      },
      options,
    );
  }
}

const objects: DynamicProvider<ObjectInputs, ObjectOutputs> = {
  identify: ({ manifest }) => (typeof manifest?.metadata?.name === "string" ? identity(manifest) : undefined),

  async check(_olds, news) {
    const { manifest, owner } = news as { [Input in keyof ObjectInputs]?: Partial<ObjectInputs[Input]> };
    const required = {
      "manifest.apiVersion": manifest?.apiVersion,
      "manifest.kind": manifest?.kind,
      "manifest.metadata.name": manifest?.metadata?.name,
      "owner.uid": owner?.uid,
    };
    const missing = Object.entries(required).filter(([, value]) => !value);
    const failures = missing.map(([property]) => ({ property, reason: "is required" }));
    return { inputs: news, failures: failures.length > 0 ? failures : checkReplaced(news as unknown as ObjectInputs) };
  },

  async diff(_id, olds, news): Promise<DiffResult> {
    // Unknown while a dependency is replaced first, in states where all inputs depend on it.
    if (typeof news.manifest !== "object") return { changes: true };
    if (identity(olds.manifest) !== identity(news.manifest)) return { changes: true, replaces: ["manifest"] };
    if (news.replaceOnChanges?.some((path) => differsIn(path, olds.manifest, news.manifest))) {
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
    // An object that is being deleted counts as gone: it cannot be repaired, only created again.
    if (live === undefined || live.metadata.deletionTimestamp) return {};
    const ignored = ignoredPaths(outs.owner.ignoreFields, outs.manifest);
    const drifted = live.metadata.uid !== outs.uid || ownedFieldsDigest(live, ignored) !== outs.fields;
    const drift = drifted ? findFieldDrift(withStoredData(outs.manifest), live, ignored) : [];
    const { drift: _, ...known } = outs;
    return { id, props: { ...known, ...(drift.length > 0 && { drift }), drifted } };
  },

  async update(_id, olds, news) {
    return { outs: await applyObject(news, [news.owner.uid, olds.owner.uid], olds) };
  },

  async delete(_id, outs) {
    const client = connectKubernetes();
    const live = await client.find(outs.manifest);
    if (live === undefined || !isStillOurs(live, outs)) return; // gone, or another owner's by now
    if (outs.existing) {
      if (live.metadata.deletionTimestamp) return; // it goes, and is known by its labels until then
      const end = await endOfOwner(client, outs.manifest);
      // The garbage collector would come late, and leave what has another owner, too.
      if (end === "ending" && isDependent(live, outs.manifest)) await deleteObject(client, live);
      else if (end === undefined) await relinquish(client, appliedManifest(outs, live), live);
    } else if (limitsNamespace(live) && (await endOfOwner(client, outs.manifest)) === "ending") {
      return; // a namespace that ends with the same owner is limited until it is gone
    } else if (outs.created && wasCreated(live)) {
      await deleteObject(client, live);
      if (outs.awaitDeletion !== false) await untilGone(client, live);
    } else {
      await relinquish(client, appliedManifest(outs, live), live);
    }
  },

  async release(_id, outs) {
    const client = connectKubernetes();
    const live = await client.find(outs.manifest);
    if (live !== undefined && isStillOurs(live, outs)) await makeUnmanaged(client, appliedManifest(outs, live), live);
  },
};

export const { stub: OBJECT_STUB, provider } = defineProvider("kindstack/providers/kubernetes/object", objects);

function checkReplaced({ manifest, replaceOnChanges }: ObjectInputs): CheckFailure[] {
  if (replaceOnChanges === undefined) return [];
  const property = "replaceOnChanges";
  if (holdsData(manifest)) {
    return [
      { property, reason: `a ${manifest.kind} holds data, and is not replaced. Make a second one, of another name` },
    ];
  }
  if (!Array.isArray(replaceOnChanges)) return [{ property, reason: "must be a list of fields" }];
  return replaceOnChanges
    .filter((path) => path !== "*" && (typeof path !== "string" || parsePath(path) === undefined))
    .map((path) => ({ property, reason: `${JSON.stringify(path)} must be a field, such as spec.selector, or *` }));
}

/** A Secret's values are secrets of the state as well. Its keys are not, so that previews can name them. */
function withSecretValues(manifest: Manifest): Manifest {
  if (!isSecret(manifest)) return manifest;
  const fields = ["data", "stringData"].filter((field) => manifest[field] !== undefined);
  return { ...manifest, ...Object.fromEntries(fields.map((field) => [field, secretValues(manifest[field])])) };
}

function secretValues(values: unknown): unknown {
  if (!isRecord(values) || Output.isInstance(values) || values instanceof Promise) return secret(values);
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, secret(value)]));
}

/** The id of an object in the state: another id means another object. */
function identity({ apiVersion, kind, metadata }: Manifest): string {
  return [groupOf(apiVersion), kind, metadata.namespace ?? "", metadata.name].join("/");
}

/** What is applied of a manifest, besides whose the object is. */
function appliedManifest({ manifest, owner }: ObjectInputs, live: LiveObject): Manifest {
  return withoutIgnored(withStoredData(manifest), live, ignoredPaths(owner.ignoreFields, manifest));
}

/**
 * An object that only lost its label is still ours. One that grants rights is ours whatever its label says: who has those
 * rights may write labels.
 */
function isStillOurs(live: LiveObject, outs: ObjectOutputs): boolean {
  const holder = ownerUidOf(live);
  const isSame = live.metadata.uid === outs.uid;
  return holder === outs.owner.uid || (isSame && (holder === undefined || grantsRights(live)));
}

/** Whether a live object has an owner that the manifest names. */
function isDependent(live: LiveObject, manifest: Manifest): boolean {
  const owners = (manifest.metadata.ownerReferences ?? []).map(({ uid }) => uid);
  return live.metadata.ownerReferences?.some(({ uid }) => owners.includes(uid)) ?? false;
}

/** Whether a resource's outputs are those of a Kubernetes object, as an engine's events show them. */
export function isObjectOutputs(outputs: Properties): outputs is Properties & ObjectOutputs {
  const { [PROVIDER_PROPERTY]: stub, fields, manifest } = outputs as Partial<Properties & ObjectOutputs>;
  // A manifest that is a secret as a whole cannot be read.
  return stub === OBJECT_STUB && typeof fields === "string" && typeof manifest?.metadata?.name === "string";
}

/** The Kubernetes objects among resources, as the state records them. */
export function objectsAmong(resources: readonly { outputs: Properties }[]): ObjectOutputs[] {
  return resources.flatMap(({ outputs }) => (isObjectOutputs(outputs) ? [outputs] : []));
}

/**
 * Removes an object that an owner has and no state knows, as the deletion of its resource would: one that existed
 * before is only released. Does not wait until it is gone.
 *
 * @param seen the object with its owner's label
 * @param options with `release`, it is kept, unmanaged
 */
export async function removeOrphan(seen: LiveObject, { release }: { release: boolean }): Promise<void> {
  const client = connectKubernetes();
  const { name, namespace, resourceVersion, ownerReferences = [] } = seen.metadata;
  const owner = ownerUidOf(seen);
  if (release) {
    await client.mergePatch(seen, name, namespace, {
      metadata: {
        resourceVersion,
        labels: { [OWNER_UID_LABEL]: null },
        annotations: { [OWNER_ANNOTATION]: null, [CREATED_ANNOTATION]: null },
        ownerReferences: ownerReferences.filter(({ uid }) => uid !== owner),
      },
    });
    return;
  }
  const live = await client.find(seen);
  if (live === undefined || ownerUidOf(live) !== owner) return; // gone, or another owner's by now
  if (wasCreated(seen) && wasCreated(live)) await deleteObject(client, live);
  else await relinquish(client, referenceTo(live), live);
}

import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { Output } from "@pulumi/pulumi/output";
import type { CustomResourceOptions } from "@pulumi/pulumi/resource";
import {
  type CheckFailure,
  type DiffResult,
  type DynamicProvider,
  DynamicResource,
  PROVIDER_PROPERTY,
  type Properties,
  providerStub,
} from "../dynamic";
import { RetryableError, TerminalError } from "../errors";
import type { KubernetesClient, LiveObject, Manifest, ResourceType } from "./client";
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

/** What a program gives for one Kubernetes object. */
export interface ObjectInputs {
  /** The fields to be applied; everything else in the live object is left to others. */
  manifest: Manifest;
  /** For whom the object is; another owner's object is refused. */
  owner: Owner;
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

export const OBJECT_STUB = providerStub("kubernetes/object");

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
  return outputs[PROVIDER_PROPERTY] === OBJECT_STUB && typeof outputs.fields === "string";
}

const GONE_TIMEOUT_MS = 120_000;

export const provider: DynamicProvider<ObjectInputs, ObjectOutputs> = {
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
    if (identity(olds.manifest) !== identity(news.manifest)) return { changes: true, replaces: ["manifest"] };
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
    const { client, type } = await locate(outs.manifest);
    const live = await find(client, type, outs.manifest);
    // What is being deleted is as good as gone: it cannot be repaired, only made anew.
    if (live === undefined || live.metadata.deletionTimestamp) return {};
    const drifted = live.metadata.uid !== outs.uid || ownedFieldsDigest(live) !== outs.fields;
    return { id, props: { ...outs, drifted } };
  },

  async update(_id, olds, news) {
    return { outs: await applyObject(news, [news.owner.uid, olds.owner.uid]) };
  },

  async delete(_id, outs) {
    const { client, type } = await locate(outs.manifest);
    const live = await find(client, type, outs.manifest);
    if (live === undefined || ownerUidOf(live) !== outs.owner.uid) return; // gone, or somebody else's by now
    const { name, namespace } = outs.manifest.metadata;
    if (outs.created && wasCreated(live)) {
      await client.delete(type, live.metadata.name, namespace, { uid: live.metadata.uid });
      await untilGone(client, type, live);
    } else {
      // Applying nothing gives up every field that was ours alone. The UID keeps the apply from creating anything.
      await client.apply(type, {
        apiVersion: outs.manifest.apiVersion,
        kind: outs.manifest.kind,
        metadata: { name: name ?? "", ...(namespace !== undefined && { namespace }), uid: live.metadata.uid },
      });
    }
  },
};

/** Makes or mends the object. @throws TerminalError when an owner other than `owners` holds it */
async function applyObject(inputs: ObjectInputs, owners: string[]): Promise<ObjectOutputs> {
  const { client, type } = await locate(inputs.manifest);
  let live = await find(client, type, inputs.manifest);
  if (live?.metadata.deletionTimestamp) {
    await untilGone(client, type, live);
    live = undefined;
  }
  if (live !== undefined) refuseForeign(live, owners);
  let result = await client.apply(type, marked(inputs, live, live === undefined || wasCreated(live)));
  if (live === undefined && !result.created) {
    // Somebody else made it between the look and the apply: it is theirs, and only adopted.
    result = await client.apply(type, marked(inputs, result.object, false));
  }
  const { object } = result;
  return {
    manifest: inputs.manifest,
    owner: inputs.owner,
    uid: object.metadata.uid,
    resourceVersion: object.metadata.resourceVersion,
    created: wasCreated(object),
    fields: ownedFieldsDigest(object),
    drifted: false,
  };
}

/** The manifest with the marks of ownership; bound to the UID of what was seen, so that no successor is overwritten. */
function marked({ manifest, owner }: ObjectInputs, live: LiveObject | undefined, created: boolean): Manifest {
  return {
    ...manifest,
    metadata: {
      ...manifest.metadata,
      ...(live !== undefined && { uid: live.metadata.uid }),
      labels: { ...manifest.metadata.labels, [OWNER_UID_LABEL]: owner.uid },
      annotations: {
        ...manifest.metadata.annotations,
        [OWNER_ANNOTATION]: owner.description,
        ...(created && { [CREATED_ANNOTATION]: "true" }),
      },
    },
  };
}

function refuseForeign(live: LiveObject, owners: string[]): void {
  const holder = ownerUidOf(live);
  if (holder === undefined || owners.includes(holder)) return;
  const description = live.metadata.annotations?.[OWNER_ANNOTATION] ?? `the owner with UID ${holder}`;
  throw new TerminalError(
    "Conflict",
    `${live.kind} ${live.metadata.name} belongs to ${description}; remove it there, or remove its label ${OWNER_UID_LABEL}`,
  );
}

async function untilGone(client: KubernetesClient, type: ResourceType, object: LiveObject): Promise<void> {
  const { name, namespace, uid } = object.metadata;
  const deadline = Date.now() + GONE_TIMEOUT_MS;
  let live: LiveObject | undefined = object;
  for (let wait = 50; Date.now() < deadline; wait = Math.min(wait * 1.5, 1000)) {
    live = await client.get(type, name, namespace);
    if (live === undefined || live.metadata.uid !== uid) return;
    await delay(wait);
  }
  const finalizers = live?.metadata.finalizers?.join(", ");
  throw new RetryableError(
    "Terminating",
    `${type.kind} ${name} is still being deleted${finalizers ? `: it waits for its finalizers ${finalizers}` : ""}`,
  );
}

async function locate(manifest: Manifest): Promise<{ client: KubernetesClient; type: ResourceType }> {
  const client = connectKubernetes();
  return { client, type: await client.resourceType(manifest.apiVersion, manifest.kind) };
}

function find(client: KubernetesClient, type: ResourceType, { metadata }: Manifest): Promise<LiveObject | undefined> {
  return client.get(type, metadata.name ?? "", metadata.namespace);
}

/** The id of an object in the state: what cannot change without its becoming another object. */
function identity({ apiVersion, kind, metadata }: Manifest): string {
  const group = apiVersion.includes("/") ? apiVersion.split("/")[0] : "";
  return [group, kind, metadata.namespace ?? "", metadata.name].join("/");
}

import type { ResourceTransformation } from "@pulumi/pulumi/resource";
import { registerStackTransformation } from "@pulumi/pulumi/runtime/stack";
import { withParent, withSdkParent } from "../../providers/dynamic";
import { TerminalError } from "../../providers/errors";
import {
  ApiError,
  type KubernetesClient,
  type LiveObject,
  type Manifest,
  type ObjectType,
} from "../../providers/kubernetes/client";
import { clusterUid } from "../../providers/kubernetes/cluster";
import { connectKubernetes, disconnectKubernetes } from "../../providers/kubernetes/connection";
import { OWNER_ANNOTATION, OWNER_UID_LABEL } from "../../providers/kubernetes/ownership";
import { type AnyKind, kindApiVersion } from "../contract/kind";
import { objectId, objectKey, PAUSED_ANNOTATION } from "../contract/object";
import { isOfSeveral, objectComponent, sharedStackAssignment, stackOf } from "../contract/shared-stack";
import { watchedObjects } from "../contract/watched";
import { isOwnStack, type StackObject } from "./objects";

/**
 * Registers the objects' resources, in the stack that is being updated.
 *
 * In an object's own stack ({@link isOwnStack}) its resources have the very URNs that they have when the watcher runs
 * it, and so they have in the stack that objects of a namespace share. In a stack of any other name each object is a
 * component as well.
 *
 * @throws TerminalError when the cluster has one of the objects and its watcher is not told to leave it alone, or has
 *   more objects in this stack, which would be deleted
 */
export async function registerObjects(objects: readonly StackObject[], stack: string): Promise<void> {
  const owners = new Set(objects.map(({ owner }) => owner.uid));
  registerStackTransformation(withoutReferencesTo(owners));
  try {
    await refuseIncomplete(objects, stack);
    for (const declared of objects) {
      await refuseWatched(declared);
      const program = await boundProgram(declared);
      if (objects.length === 1 && isOwnStack(declared, stack)) await program();
      else {
        const within = declared.kind.capabilities.sdkRuntime ? withSdkParent : withParent;
        await within(objectComponent(declared.kind, declared.key), program);
      }
    }
  } finally {
    await disconnectKubernetes();
  }
}

/** The kind's program, with what it needs to know of the cluster; nothing is asked of it for kinds that go by nothing in it. */
async function boundProgram({ kind, key, object, owner }: StackObject): Promise<() => void | Promise<void>> {
  const { namespace } = object.metadata;
  const { liveState, watches } = kind.capabilities;
  const owned =
    liveState === undefined
      ? []
      : await liveObjects(connectKubernetes(), liveState.reads, owner.description, namespace);
  const watched = watches === undefined ? [] : await watchedObjects(connectKubernetes(), kind, key);
  const cluster = await whereThereIsACluster(kind, undefined, clusterUid);
  const around = { owned, recorded: new Set(owned.map(objectId)), watched, ...(cluster && { cluster }) };
  return () => kind.program(object, { owner, ...around });
}

/**
 * What is alive of what the object made. It is found by the owner's description, which, unlike the UID, is the same
 * before and after a hand-over between watcher and stack. Anybody may write it on what is his, so that what a namespaced
 * object owns is looked for in its own namespace alone.
 */
async function liveObjects(
  client: KubernetesClient,
  types: readonly ObjectType[],
  description: string,
  namespace: string | undefined,
): Promise<LiveObject[]> {
  const lists = await Promise.all(
    types.map((type) => client.list(type, { labelSelector: OWNER_UID_LABEL, namespace })),
  );
  return lists
    .flatMap(({ items }) => items)
    .filter(({ metadata }) => metadata.annotations?.[OWNER_ANNOTATION] === description);
}

/** What a program does not register is deleted: taking over a shared stack means taking over all of its objects. */
async function refuseIncomplete(objects: readonly StackObject[], stack: string): Promise<void> {
  const placeOf = ({ kind, object }: StackObject) =>
    sharedStackAssignment(kind, object.metadata.namespace ?? "", stack);
  const shared = objects.find((one) => placeOf(one) !== undefined);
  const place = shared && placeOf(shared);
  if (shared === undefined || place === undefined) return;
  const { kind } = shared;
  const declared = new Set(objects.map(({ key }) => key));
  const live = await listLive(kind, isOfSeveral(place.partition) ? undefined : place.partition);
  const others = live.map((one) => ({ one, key: objectKey(one.metadata) })).filter(({ key }) => !declared.has(key));
  const missing = others.filter(({ one, key }) => stackOf(kind, key, one) === stack).map(({ key }) => key);
  if (missing.length === 0) return;
  throw new TerminalError(
    "Incomplete",
    `the stack ${stack} also has ${missing.length} other ${kind.plural}, which would be deleted: ` +
      `${missing.slice(0, 5).join(", ")}; give the manifests of all of them`,
  );
}

async function listLive(kind: AnyKind, namespace: string | undefined): Promise<LiveObject[]> {
  return whereThereIsACluster(kind, [], async (client) => {
    const type = { apiVersion: kindApiVersion(kind), kind: kind.kind };
    return (await client.list(type, { namespace })).items;
  });
}

/** Two who work on the same stack in turns would each undo what the other did. */
async function refuseWatched({ kind, object, key }: StackObject): Promise<void> {
  const live = await findLive(kind, object.metadata.name, object.metadata.namespace);
  if (live === undefined || live.metadata.annotations?.[PAUSED_ANNOTATION] === "true") return;
  const place = live.metadata.namespace === undefined ? "" : ` -n ${live.metadata.namespace}`;
  throw new TerminalError(
    "Watched",
    `${kind.kind} ${key} is in the cluster, where the operator works on it. To take it over, pause it first: ` +
      `kubectl annotate ${kind.plural}.${kind.group} ${live.metadata.name}${place} ${PAUSED_ANNOTATION}=true`,
  );
}

/** The object that the cluster has of this name. */
function findLive(kind: AnyKind, name: string, namespace?: string): Promise<LiveObject | undefined> {
  return whereThereIsACluster(kind, undefined, async (client) =>
    client.get({ apiVersion: kindApiVersion(kind), kind: kind.kind }, name, namespace),
  );
}

/** Asks the cluster, or answers `otherwise` when it does not know the kind or need not be there at all. */
async function whereThereIsACluster<T>(
  kind: AnyKind,
  otherwise: T,
  ask: (client: KubernetesClient) => Promise<T>,
): Promise<T> {
  try {
    return await ask(connectKubernetes());
  } catch (error) {
    const unreachable = error instanceof ApiError && ["Unreachable", "NoCluster"].includes(error.reason);
    if (error instanceof ApiError && (error.notFound || (unreachable && kind.owns.length === 0))) return otherwise;
    throw error;
  }
}

/**
 * The garbage collector deletes whatever refers to an owner that does not exist, and these do not exist in a cluster.
 * Deletion is the stack's business here.
 */
function withoutReferencesTo(uids: ReadonlySet<string>): ResourceTransformation {
  return ({ props, opts }) => {
    const manifest = (props as { manifest?: Manifest }).manifest;
    if (manifest?.metadata?.ownerReferences === undefined) return undefined;
    const { ownerReferences, ...metadata } = manifest.metadata;
    const kept = ownerReferences.filter(({ uid }) => !uids.has(uid));
    const changed = { ...metadata, ...(kept.length > 0 && { ownerReferences: kept }) };
    return { props: { ...props, manifest: { ...manifest, metadata: changed } }, opts };
  };
}

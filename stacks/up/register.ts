import type { ResourceTransformation } from "@pulumi/pulumi/resource";
import { registerStackTransformation } from "@pulumi/pulumi/runtime/stack";
import { component, withParent, withSdkParent } from "../../providers/dynamic";
import {
  ApiError,
  type KubernetesClient,
  known,
  type LiveObject,
  type ObjectType,
} from "../../providers/kubernetes/client";
import { clusterOf } from "../../providers/kubernetes/cluster";
import { connectKubernetes } from "../../providers/kubernetes/connection";
import { managedByOperator } from "../../providers/kubernetes/managed-owner";
import type { ObjectInputs } from "../../providers/kubernetes/object-inputs";
import { OWNER_ANNOTATION, OWNER_UID_LABEL } from "../../providers/kubernetes/ownership";
import { obeyedAnnotations } from "../contract/annotations";
import { type AnyKind, kindApiVersion, kindName, kindType } from "../contract/kind";
import { objectId } from "../contract/object";
import { readReferenced } from "../contract/references";
import { runProgram } from "../contract/run-program";
import { watchedObjects } from "../contract/watched";
import { isOwnStack, type StackObject } from "./objects";

/**
 * Registers the objects' resources, in the stack that is being updated. In an object's own stack ({@link isOwnStack}) these are
 * that object's, with the URNs that the operator gives them. In any other stack, each object is a component.
 *
 * @throws TerminalError when the cluster has one of the objects and it is not paused
 */
export async function registerObjects(objects: readonly StackObject[], stack: string): Promise<void> {
  const owners = new Set(objects.map(({ owner }) => owner.uid));
  registerStackTransformation(withoutReferencesTo(owners));
  const own = objects.find((declared) => isOwnStack(declared, stack));
  for (const declared of own === undefined ? objects : [own]) {
    await refuseWatched(declared);
    const program = await boundProgram(declared);
    if (declared === own) await program();
    else {
      const { kind, key } = declared;
      const within = kind.capabilities.sdkRuntime ? withSdkParent : withParent;
      await within(component(`kindstack:${kindApiVersion(kind)}:${kind.kind}`, key), program);
    }
  }
}

/** The kind's program, with what it needs to know of the cluster; kinds that depend on nothing in it ask for nothing. */
async function boundProgram({ kind, key, object, owner }: StackObject): Promise<() => void | Promise<void>> {
  const { liveState, watches = [] } = kind.capabilities;
  const owned = await liveObjects(liveState?.reads ?? [], owner.description, object.metadata.namespace);
  const watched = watches.length > 0 ? await watchedObjects(connectKubernetes(), kind, key) : [];
  const cluster = await fromCluster(kind, clusterOf);
  const referenced = kind.capabilities.reads && (await readReferenced(connectKubernetes(), kind, object));
  const recorded = new Set(owned.map(objectId));
  const inputs = { owned, recorded, watched, ...(referenced && { referenced }), ...(cluster && { cluster }) };
  return () => runProgram(kind, object, { owner, ...inputs });
}

/**
 * The live objects of these types that belong to an owner. They are found by the owner's description, which, unlike the UID,
 * is the same before and after a hand-over between operator and stack. Users can write it on objects of their own, so a
 * namespaced object's are looked for in its own namespace alone.
 */
async function liveObjects(
  types: readonly ObjectType[],
  description: string,
  namespace: string | undefined,
): Promise<LiveObject[]> {
  const lists = await Promise.all(
    types.map((type) => connectKubernetes().list(type, { labelSelector: OWNER_UID_LABEL, namespace })),
  );
  return lists
    .flatMap(({ items }) => items)
    .filter(({ metadata }) => metadata.annotations?.[OWNER_ANNOTATION] === description);
}

/** An operator and a program that update the same object would each undo what the other did. */
async function refuseWatched({ kind, object, key }: StackObject): Promise<void> {
  const { name, namespace } = object.metadata;
  const live = await fromCluster(kind, (client) => known(client.get(kindType(kind), name, namespace)));
  if (live === undefined || obeyedAnnotations(live).paused) return;
  throw managedByOperator(`${kind.kind} ${key}`, kindName(kind), live);
}

/** Asks the cluster; `undefined` when it does not know the kind, or need not exist for it and cannot be reached. */
async function fromCluster<T>(kind: AnyKind, ask: (client: KubernetesClient) => Promise<T>): Promise<T | undefined> {
  try {
    return await ask(connectKubernetes());
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const unreachable = ["Unreachable", "NoCluster"].includes(error.reason);
    if (error.status === 404 || (unreachable && kind.owns.length === 0)) return undefined;
    throw error;
  }
}

/**
 * The garbage collector deletes whatever refers to an owner that does not exist, and these do not exist in a cluster.
 * Deletion is the stack's business here.
 */
function withoutReferencesTo(uids: ReadonlySet<string>): ResourceTransformation {
  return ({ props, opts }) => {
    const { deletedWith, manifest, ...others } = props as Partial<ObjectInputs>;
    if (manifest?.metadata === undefined) return undefined;
    const { ownerReferences = [], ...metadata } = manifest.metadata;
    if (!Array.isArray(ownerReferences)) return undefined; // an output: of a resource that is not ours
    const kept = ownerReferences.filter(({ uid }) => !uids.has(uid));
    const changed = { ...metadata, ...(kept.length > 0 && { ownerReferences: kept }) };
    const isOwn = deletedWith === undefined || uids.has(deletedWith.uid);
    return { props: { ...others, ...(!isOwn && { deletedWith }), manifest: { ...manifest, metadata: changed } }, opts };
  };
}

import { isApiError, type KubernetesClient, known } from "./client";
import type { ObjectInputs } from "./object-inputs";
import { typeName } from "./object-types";
import type { LiveObject, Manifest, OwnerReference } from "./types";

/*
 * The garbage collector deletes what refers to an owner that is gone, or is deleted in the foreground, whatever finalizers and
 * annotations that owner has. What a stack made is deleted by the stack alone, so it does not refer to the stack's object. A Pod
 * needs a controller, and refers to its namespace as well: of two owners, the collector only drops the one that ends.
 */

const NAMESPACE = { apiVersion: "v1", kind: "Namespace" } as const;

/** Whether an object needs a controller: without one, it is not drained, and ReplicaSets adopt it. */
function needsController(object: Manifest): boolean {
  return typeName(object) === "v1/Pod";
}

/**
 * Inputs as their manifest is applied: without references to their own owner. References that earlier releases applied are
 * left out as well, so that they make no difference.
 */
export function withoutOwnReferences<Inputs extends Pick<ObjectInputs, "manifest" | "owner" | "initial">>(
  inputs: Inputs,
): Inputs {
  const { manifest, owner, initial } = inputs;
  const own = ownReference(manifest, owner?.uid);
  const first = ownReference(initial?.manifest, owner?.uid);
  return {
    ...inputs,
    ...(own && { manifest: withoutReference(manifest, own), deletedWith: own }),
    ...(initial && first && { initial: { ...initial, manifest: withoutReference(initial.manifest, first) } }),
  };
}

/** The reference to its owner that a manifest is not to have. */
function ownReference(manifest: Manifest | undefined, owner: string | undefined): OwnerReference | undefined {
  const references: unknown = manifest?.metadata?.ownerReferences;
  if (manifest === undefined || !Array.isArray(references) || needsController(manifest)) return undefined;
  return references.find(({ uid }: OwnerReference) => uid === owner);
}

function withoutReference(manifest: Manifest, { uid }: OwnerReference): Manifest {
  return withReferences(manifest, others(manifest.metadata.ownerReferences ?? [], uid));
}

/** What is applied of a manifest: a Pod that refers to an owner refers to its namespace as well, as far as that is known. */
export function withLastingOwner(manifest: Manifest, lasting: OwnerReference | undefined): Manifest {
  const { ownerReferences: references = [] } = manifest.metadata;
  if (lasting === undefined || references.length === 0) return manifest;
  return withReferences(manifest, [...references, lasting]);
}

/** The reference to its namespace that a Pod is to have; what is live has it in most cases. */
export async function lastingOwner(
  client: NamespaceReader,
  manifest: Manifest,
  live: LiveObject | undefined,
): Promise<OwnerReference | undefined> {
  const { namespace = "", ownerReferences = [] } = manifest.metadata;
  if (!needsController(manifest) || ownerReferences.length === 0) return undefined;
  return lastingOwnerOf(live) ?? (await namespaceReference(client, namespace));
}

/** The reference to its namespace that a live Pod has. */
export function lastingOwnerOf(live: LiveObject | undefined): OwnerReference | undefined {
  if (live === undefined || !needsController(live)) return undefined;
  return live.metadata.ownerReferences?.find(isNamespace);
}

/**
 * The wanted owner references of a live object; `undefined` where the live references are correct.
 *
 * @param owner the UID of the object whose stack has it
 */
export async function correctedReferences(
  client: NamespaceReader,
  live: LiveObject,
  owner: string,
): Promise<OwnerReference[] | undefined> {
  const { namespace = "", ownerReferences: references = [] } = live.metadata;
  if (!references.some(({ uid }) => uid === owner)) return undefined;
  if (!needsController(live)) return others(references, owner);
  if (lastingOwnerOf(live) !== undefined) return undefined;
  const lasting = await namespaceReference(client, namespace);
  return lasting && [...references, lasting];
}

export function releasedReferences(live: LiveObject, owner: string | undefined): OwnerReference[] {
  const lasting = lastingOwnerOf(live);
  return (live.metadata.ownerReferences ?? []).filter(({ uid }) => uid !== owner && uid !== lasting?.uid);
}

function others(references: readonly OwnerReference[], owner: string): OwnerReference[] {
  return references.filter(({ uid }) => uid !== owner);
}

function withReferences(manifest: Manifest, references: readonly OwnerReference[]): Manifest {
  const { ownerReferences: _, ...metadata } = manifest.metadata;
  return { ...manifest, metadata: { ...metadata, ...(references.length > 0 && { ownerReferences: [...references] }) } };
}

function isNamespace({ apiVersion, kind }: OwnerReference): boolean {
  return apiVersion === NAMESPACE.apiVersion && kind === NAMESPACE.kind;
}

/** Long enough for the Pods of one update. */
const KNOWN_FOR_MS = 10_000;
/** By what the clients of all calls share. */
const namespaces = new WeakMap<object, Map<string, { reference: OwnerReference; until: number }>>();
type NamespaceReader = Pick<KubernetesClient, "get" | "shared">;

/** @returns undefined where the namespace is gone or may not be read */
async function namespaceReference(client: NamespaceReader, name: string): Promise<OwnerReference | undefined> {
  const references = namespaces.get(client.shared) ?? new Map();
  namespaces.set(client.shared, references);
  const last = references.get(name);
  if (last !== undefined && performance.now() < last.until) return last.reference;
  const namespace = await known(client.get(NAMESPACE, name)).catch((error) => {
    if (isApiError(error, 403)) return undefined;
    throw error;
  });
  if (namespace === undefined) return undefined;
  const reference = { ...NAMESPACE, name, uid: namespace.metadata.uid };
  references.set(name, { reference, until: performance.now() + KNOWN_FOR_MS });
  return reference;
}

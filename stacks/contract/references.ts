import { hash } from "node:crypto";
import {
  type KubernetesClient,
  known,
  type LiveObject,
  type Manifest,
  type ObjectType,
} from "../../providers/kubernetes/client";
import type { NamedType } from "./capabilities";
import { CodeEndedError } from "./code-ended";
import type { AnyKind } from "./kind";
import { type KindObject, objectId, type ReferenceRecord } from "./object";
import type { Referenced } from "./run-context";

interface Target extends ObjectType {
  metadata: { name: string; namespace?: string };
}

/** What each reference of an object leads to, with the name that the kind gives the reference; nothing where it names nothing. */
async function targetsOf(kind: AnyKind, object: KindObject): Promise<[alias: string, Target, NamedType][]> {
  const references = Object.entries(kind.capabilities.reads ?? {});
  const names = await Promise.all(references.map(([, reference]) => reference.name(object)));
  return references.flatMap(([alias, reference], index) => {
    const name = names[index];
    const namespace = reference.scope === "Cluster" ? undefined : (reference.namespace ?? object.metadata.namespace);
    if (!name) return [];
    const metadata = { name, ...(namespace !== undefined && { namespace }) };
    return [[alias, { apiVersion: reference.apiVersion, kind: reference.kind, metadata }, reference]];
  });
}

/**
 * The references of an object that have a target, with the target; no references of an object that does not fit its schema.
 */
export async function referencesOf(kind: AnyKind, object: Manifest): Promise<[NamedType, Target][]> {
  try {
    const targets = await targetsOf(kind, object as unknown as KindObject);
    return targets.map(([, target, reference]) => [reference, target]);
  } catch (error) {
    if (error instanceof CodeEndedError) throw error;
    return [];
  }
}

/** Reads what an object refers to. @throws ApiError when the API server cannot tell */
export async function readReferenced(
  client: Pick<KubernetesClient, "find">,
  kind: AnyKind,
  object: KindObject,
): Promise<Referenced> {
  const found = (await targetsOf(kind, object)).map(
    async ([alias, target]) => [alias, await known(client.find(target))] as const,
  );
  return new Map(await Promise.all(found));
}

/** What was referred to, as the status records it. */
export async function referenceRecords(
  kind: AnyKind,
  object: KindObject,
  referenced: Referenced,
): Promise<ReferenceRecord[]> {
  const records = (await targetsOf(kind, object)).map(([alias, target]) => {
    const version = referenced.get(alias)?.metadata.resourceVersion;
    return { id: objectId(target), ...(version !== undefined && { version }) };
  });
  return [...new Map(records.map((record) => [record.id, record])).values()];
}

/** Written by the operator and by kubectl, about themselves. */
const OWN = /^kindstack\.dev\/|^kubectl\.kubernetes\.io\/last-applied-configuration$/;

/** A digest of an object's labels and annotations, as far as they are users'. */
export function metadataDigest({ labels, annotations }: LiveObject["metadata"]): string {
  const users = (texts: Readonly<Record<string, string>> = {}) =>
    Object.entries(texts)
      .filter(([key]) => !OWN.test(key))
      .sort(([a], [b]) => (a < b ? -1 : 1));
  return hash("sha256", JSON.stringify([users(labels), users(annotations)])).slice(0, 20);
}

/** A copy of an object that tells when its labels or annotations are looked at. */
export function observingMetadata(object: KindObject, looked: () => void): KindObject {
  const observing = withObserved(object, looked);
  observed.set(observing, { object, looked });
  return observing;
}

const observed = new WeakMap<KindObject, { object: KindObject; looked: () => void }>();

/** The object behind {@link observingMetadata}, for a program of another process, which tells by `looked` what it has looked at. */
export function observedObject(object: KindObject): { object: KindObject; looked: () => void } {
  return observed.get(object) ?? { object, looked: () => {} };
}

function withObserved(object: KindObject, looked: () => void): KindObject {
  const metadata = { ...object.metadata };
  for (const field of ["labels", "annotations"] as const) {
    const value = metadata[field];
    const get = () => {
      looked();
      return value;
    };
    Object.defineProperty(metadata, field, { get, enumerable: value !== undefined });
  }
  return { ...object, metadata };
}

import { KubeConfig } from "@kubernetes/client-node";
import { expect } from "vitest";
import { isApiError, KubernetesClient, known, type LiveObject, type Manifest } from "../../providers/kubernetes/client";
import { groupVersionPath } from "../../providers/kubernetes/resource-types";
import { eventually } from "../../src/testing/eventually";
import { RECONCILE_ANNOTATION } from "../../stacks/contract/annotations";
import { controlPlane } from "../control-plane";
import { KINDS } from "./manifests";

/* What tests do with objects in the cluster. */

const config = new KubeConfig();
config.loadFromFile(controlPlane().kubeconfig);
/** Acts as the cluster's administrator. */
export const client = new KubernetesClient(config);

/** Acts as a user with the administrator's certificate; the caller closes it. */
export function clientAs(user: string): KubernetesClient {
  const own = new KubeConfig();
  own.loadFromFile(controlPlane().kubeconfig);
  own.users = own.users.map((known) => ({ ...known, impersonateUser: user }));
  return new KubernetesClient(own);
}

/** A client other than Kindstack, as a field manager. */
const SOMEONE = "someone";

/** What names an object: any manifest of it. */
export type Reference = Pick<Manifest, "apiVersion" | "kind" | "metadata">;

/** Applies a manifest as its author would. */
export async function apply(manifest: Manifest): Promise<LiveObject> {
  return (await client.apply(manifest, { fieldManager: SOMEONE })).object;
}

/** Creates an object that does not exist; what `kubectl create`, and `kubectl apply` the first time, do. */
export function create(manifest: Manifest): Promise<LiveObject> {
  return client.create(manifest);
}

/** Changes fields of an object as anyone may, by a JSON merge patch. */
export function edit(reference: Reference, patch: object): Promise<LiveObject> {
  return patchObject(reference, "application/merge-patch+json", patch);
}

/** Sets annotations; `null` removes one. */
export function annotate(reference: Reference, annotations: Record<string, string | null>): Promise<LiveObject> {
  return edit(reference, { metadata: { annotations } });
}

/** Sets the finalizers of an object, and lets it go with none. */
export function setFinalizers(reference: Reference, finalizers: string[] | null): Promise<LiveObject> {
  return edit(reference, { metadata: { finalizers } });
}

/** Asks the operator for another update. @param value another one than before */
export function requestUpdate(reference: Reference, value: string): Promise<LiveObject> {
  return annotate(reference, { [RECONCILE_ANNOTATION]: value });
}

/** Gives an object another spec, of which nothing of the former one is a part. */
export function replaceSpec(reference: Reference, spec: unknown): Promise<LiveObject> {
  return patchObject(reference, "application/json-patch+json", [{ op: "replace", path: "/spec", value: spec }]);
}

async function patchObject(reference: Reference, contentType: string, body: object): Promise<LiveObject> {
  const options = { query: { fieldManager: SOMEONE }, contentType, body };
  return client.json("PATCH", await pathOf(reference), options);
}

/** Where the API server has an object. */
export async function pathOf({ apiVersion, kind, metadata }: Reference): Promise<string> {
  const { plural } = await client.resourceType(apiVersion, kind);
  const scope = metadata.namespace === undefined ? "" : `/namespaces/${metadata.namespace}`;
  return `${groupVersionPath(apiVersion)}${scope}/${plural}/${metadata.name}`;
}

export function find(reference: Reference): Promise<LiveObject | undefined> {
  const { name = "", namespace } = reference.metadata;
  return known(client.get(reference, name, namespace));
}

/** @throws when it does not exist */
export async function get(reference: Reference): Promise<LiveObject> {
  const object = await find(reference);
  if (object === undefined) throw new Error(`there is no ${reference.kind} ${reference.metadata.name}`);
  return object;
}

export async function remove(reference: Reference): Promise<void> {
  const { name = "", namespace } = reference.metadata;
  await client.delete(reference, name, namespace);
}

/** A token of a ServiceAccount. */
export async function tokenOf(namespace: string, serviceAccount: string): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${serviceAccount}/token`;
  const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} };
  return (await client.json<{ status: { token: string } }>("POST", path, { body })).status.token;
}

/** The Events about an object, those of cluster-scoped objects as well. */
export async function eventsAbout(object: LiveObject): Promise<LiveObject[]> {
  const { items } = await client.list({ apiVersion: "events.k8s.io/v1", kind: "Event" });
  return items.filter(({ regarding }) => (regarding as { uid?: string } | undefined)?.uid === object.metadata.uid);
}

/** Waits until an Event about an object has these fields. */
export async function untilEvent(object: Reference, fields: object): Promise<void> {
  const live = "uid" in object.metadata ? (object as LiveObject) : await get(object);
  await eventually(async () => expect(await eventsAbout(live)).toContainEqual(expect.objectContaining(fields)));
}

/** Deletes all objects of the kinds that the operator serves, by force once it gets no further. */
export async function removeAllObjects(): Promise<void> {
  let left = await allObjects();
  await Promise.all(left.map(remove));
  while (left.length > 0) {
    const before = left.length;
    await eventually(async () => {
      left = await allObjects();
      if (left.length >= before) throw new Error(`${left.length} are left`);
    }).catch(() => Promise.all(left.map((object) => unlessGone(setFinalizers(object, null)))));
  }
}

/** A write that may come too late. */
export async function unlessGone(write: Promise<unknown>): Promise<void> {
  await write.catch((error: unknown) => {
    if (!isApiError(error, 404)) throw error;
  });
}

async function allObjects(): Promise<LiveObject[]> {
  const lists = await Promise.all(
    KINDS.map((type) =>
      client.list(type).catch((error: unknown) => {
        if (isApiError(error, 404)) return { items: [] }; // its CRD is not installed
        throw error;
      }),
    ),
  );
  return lists.flatMap(({ items }) => items);
}

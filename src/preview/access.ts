import pLimit from "p-limit";
import { type ResourceAttributes, reviewAccess } from "../../providers/kubernetes/access-review";
import type { KubernetesClient } from "../../providers/kubernetes/client";
import type { AnyKind } from "../../stacks/contract/kind";
import { resourceOf } from "../../stacks/contract/rbac";
import { referencesOf } from "../../stacks/contract/references";
import type { Identity } from "../http/identity";
import { Refusal } from "../http/refusal";
import type { Selection } from "./preview";

/** One right, as a SubjectAccessReview asks for it, in all versions of the API. */
export type NeededRight = Omit<ResourceAttributes, "version">;

const GROUP = "kindstack.dev";
/** SubjectAccessReviews for one request at the same time. */
const CONCURRENT_REVIEWS = 8;

/**
 * What a caller needs for a preview: `create` on `previews.kindstack.dev` where the objects are, and `get` on each object,
 * since a preview shows what it is now.
 */
export async function rightsForPreview(selection: Selection, kinds: readonly AnyKind[]): Promise<NeededRight[]> {
  return unique(
    selection.candidates.flatMap(({ kind, manifest: { metadata } }) => [
      stackRight("create", "previews", kind, metadata.namespace),
      objectRight("get", kind, metadata.namespace, metadata.name),
    ]),
  ).concat(await rightsToRead(selection, kinds));
}

/** `get` on all targets of references: a preview shows resources that programs derive from them. */
export async function rightsToRead({ candidates }: Selection, kinds: readonly AnyKind[]): Promise<NeededRight[]> {
  const kept = candidates.filter(({ removed }) => !removed);
  const references = await Promise.all(kept.map(({ kind, manifest }) => referencesOf(kind, manifest)));
  return unique(
    references.flat().map(([reference, { metadata }]) => {
      const { apiGroups, resources } = resourceOf(reference, kinds);
      return { verb: "get", group: apiGroups[0] ?? "", resource: resources[0] ?? "", ...metadata };
    }),
  );
}

/** The same for objects of the cluster; a request that names no object needs `list`. */
export function rightsForDiff(
  kinds: readonly AnyKind[],
  { name, namespace }: { name?: string; namespace?: string },
): NeededRight[] {
  return unique(
    kinds.flatMap((kind) => [
      stackRight("create", "previews", kind, namespace),
      objectRight(name === undefined ? "list" : "get", kind, namespace, name),
    ]),
  );
}

/**
 * For a preview of many live objects, whose names would take a review each: the same in whole namespaces.
 *
 * @param definitions of which it is told whether they are there
 */
export function rightsForFleet({ candidates }: Selection, definitions: readonly string[]): NeededRight[] {
  const [group, resource] = ["apiextensions.k8s.io", "customresourcedefinitions"];
  return unique([
    ...candidates.flatMap(({ kind, manifest: { metadata } }) => [
      stackRight("create", "previews", kind, metadata.namespace),
      objectRight("get", kind, metadata.namespace),
    ]),
    ...definitions.map((name) => ({ verb: "get", group, resource, name })),
  ]);
}

/** For the stack of one object: `get` on `previews` (its history, what it made) or on `states`, and on the object. */
export function rightsForStack(
  resource: "previews" | "states",
  kind: AnyKind,
  namespace: string | undefined,
  name: string,
): NeededRight[] {
  return [stackRight("get", resource, kind, namespace), objectRight("get", kind, namespace, name)];
}

/** To see the processes of plugins and where their files are, which concerns no object: in all namespaces. */
export const rightForPlugins: NeededRight = { verb: "list", group: GROUP, resource: "plugins" };

/** @throws Refusal 403 naming the first right that the caller does not have */
export async function requireRights(
  client: Pick<KubernetesClient, "json">,
  user: Identity,
  rights: readonly NeededRight[],
): Promise<void> {
  const limit = pLimit(CONCURRENT_REVIEWS);
  await limit.map(rights, async (right) => {
    if (await reviewAccess(client, user, { resourceAttributes: { version: "*", ...right } })) return;
    limit.clearQueue();
    throw new Refusal(403, "Forbidden", `${user.username} may not ${describe(right)}`);
  });
}

function describe({ verb, group, resource, namespace, name }: NeededRight): string {
  return `${verb} ${resource}.${group}${name === undefined ? "" : ` ${name}`}${
    namespace === undefined ? " in all namespaces" : ` in the namespace ${namespace}`
  }`;
}

function stackRight(verb: string, resource: "previews" | "states", kind: AnyKind, namespace?: string): NeededRight {
  return { verb, group: GROUP, resource, ...inNamespace(kind, namespace) };
}

function objectRight(verb: string, kind: AnyKind, namespace?: string, name?: string): NeededRight {
  return { verb, group: kind.group, resource: kind.plural, ...inNamespace(kind, namespace), ...(name && { name }) };
}

function inNamespace({ scope }: AnyKind, namespace: string | undefined): { namespace?: string } {
  return scope === "Namespaced" && namespace !== undefined ? { namespace } : {};
}

function unique(rights: readonly NeededRight[]): NeededRight[] {
  return [...new Map(rights.map((right) => [JSON.stringify(right), right])).values()];
}

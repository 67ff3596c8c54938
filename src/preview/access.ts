import pLimit from "p-limit";
import { reviewAccess } from "../../providers/kubernetes/access-review";
import type { KubernetesClient } from "../../providers/kubernetes/client";
import type { AnyKind } from "../../stacks/contract/kind";
import { Refusal } from "../http/refusal";
import type { Identity } from "../proxy/identity";
import type { LocatedStack } from "./inspector";
import type { Selection } from "./preview";
import type { DiffRequest } from "./requests";

/** One right, as a SubjectAccessReview asks for it; without a namespace, in all of them. */
export interface NeededRight {
  verb: "get" | "list" | "create";
  group: string;
  resource: string;
  namespace?: string;
  name?: string;
}

const GROUP = "kindstack.dev";
/** SubjectAccessReviews for one request at the same time. */
const CONCURRENT_REVIEWS = 8;

/**
 * What a caller needs for a preview: `create` on `previews.kindstack.dev` where the objects are, and `get` on each object,
 * since a preview shows what it is now.
 */
export function rightsForPreview({ candidates }: Selection): NeededRight[] {
  return unique(
    candidates.flatMap(({ kind, manifest: { metadata } }) => [
      previews("create", kind, metadata.namespace),
      objectRight("get", kind, metadata.namespace, metadata.name),
    ]),
  );
}

/** The same for objects of the cluster, a request may name all of them: then `list`. */
export function rightsForDiff(chosen: readonly AnyKind[], { name, namespace }: DiffRequest): NeededRight[] {
  return unique(
    chosen.flatMap((kind) => [
      previews("create", kind, namespace),
      objectRight(name === undefined ? "list" : "get", kind, namespace, name),
    ]),
  );
}

/**
 * For the stack of one object: `get` on `previews` (its history, what it made) or on `states` (its state), and on the object.
 * A state, or a history, that other objects share is for those who may list all of these.
 */
export function rightsForStack(
  resource: "previews" | "states",
  { kind, namespace, name, sharedBy }: Pick<LocatedStack, "kind" | "namespace" | "name"> & Partial<LocatedStack>,
  whole: boolean,
): NeededRight[] {
  return [
    { verb: "get", group: GROUP, resource, ...placed(kind, namespace) },
    objectRight("get", kind, namespace, name),
    ...(whole && sharedBy !== undefined
      ? [objectRight("list", kind, sharedBy === "namespaces" ? undefined : namespace)]
      : []),
  ];
}

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

function previews(verb: NeededRight["verb"], kind: AnyKind, namespace: string | undefined): NeededRight {
  return { verb, group: GROUP, resource: "previews", ...placed(kind, namespace) };
}

function objectRight(verb: NeededRight["verb"], kind: AnyKind, namespace?: string, name?: string): NeededRight {
  return { verb, group: kind.group, resource: kind.plural, ...placed(kind, namespace), ...(name && { name }) };
}

function placed({ scope }: AnyKind, namespace: string | undefined): { namespace?: string } {
  return scope === "Namespaced" && namespace !== undefined ? { namespace } : {};
}

function unique(rights: readonly NeededRight[]): NeededRight[] {
  return [...new Map(rights.map((right) => [JSON.stringify(right), right])).values()];
}

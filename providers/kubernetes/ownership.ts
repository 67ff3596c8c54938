import { hash } from "node:crypto";
import { canonicalJson } from "../canonical-json";
import { FIELD_MANAGER } from "./client";
import { covers, partAt } from "./field-path";
import type { LiveObject, ManagedFieldsEntry, OwnerReference } from "./types";

/** On everything that Kindstack applies: the UID of the owning object. Watches select by it. */
export const OWNER_UID_LABEL = "kindstack.dev/owner-uid";
/** The same owner in words, for people and for messages about conflicts. */
export const OWNER_ANNOTATION = "kindstack.dev/owner";
/** On what did not exist before: only this is deleted again. Its absence means that the object was adopted. */
export const CREATED_ANNOTATION = "kindstack.dev/created";

/** The owner of an object. */
export interface Owner {
  /** The UID of a custom resource, or another name that no two owners share. */
  uid: string;
  /** For people: `Tenant.multitenancy.codereliant.io/acme`. */
  description: string;
  /** Fields of its Kubernetes objects that are left to others, such as `Deployment/web:spec.replicas`. */
  ignoreFields?: readonly string[];
}

export function ownerUidOf(object: LiveObject): string | undefined {
  return object.metadata.labels?.[OWNER_UID_LABEL];
}

/** Whether Kindstack made this object, as opposed to having found and adopted it. */
export function wasCreated(object: LiveObject): boolean {
  return object.metadata.annotations?.[CREATED_ANNOTATION] === "true";
}

const UID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** So much of a stack's name is in the UIDs of its owners. */
const STACK_LENGTH = 36;

/** The UID of an owner in a stack of `pulumi up`: a label's value, from which messages take the stack's name. */
export function stackOwnerUid(stack: string, digest: string): string {
  return `stack-${stack.slice(0, STACK_LENGTH)}-${digest.slice(0, 20)}`;
}

/** Whether an owner is one of a stack of `pulumi up` of this name. */
export function isOwnerIn(stack: string, uid: string): boolean {
  return stackOfOwner(uid) === stack.slice(0, STACK_LENGTH);
}

/** Whether an owner may be one of a stack of `pulumi up` that has the name of an operator's stack of such an object. */
export function mayBeOwnerOf(objectName: string, uid: string): boolean {
  const stack = stackOfOwner(uid) ?? "";
  const [, named] = /^[^.]+\.(.+)$/.exec(stack) ?? [];
  if (named === undefined) return stack.length === STACK_LENGTH;
  return named.startsWith(`${objectName}-`.slice(0, named.length));
}

function stackOfOwner(uid: string): string | undefined {
  return /^stack-(.+)-[0-9a-f]{20}$/.exec(uid)?.[1];
}

/** Whether an owner is an object in a cluster; the names of others differ. */
export function isClusterUid(uid: string): boolean {
  return UID.test(uid);
}

/** Why a live object is refused to an owner with `Conflict`; `undefined` when it is not. */
export function describeConflict(
  live: LiveObject,
  owner: Owner,
  owners: readonly string[],
  adopt: boolean,
): string | undefined {
  const { uid } = owner;
  const holder = ownerUidOf(live);
  const what = `${live.kind} ${live.metadata.name}`;
  if (holder === undefined && !adopt) return `${what} exists already and is not adopted`;
  if (holder === undefined || owners.includes(holder) || isPredecessor(live, owner)) return undefined;
  const description = live.metadata.annotations?.[OWNER_ANNOTATION] ?? `the owner with UID ${holder}`;
  const ofUp = stackOfOwner(holder);
  const stack = ofUp === undefined ? "the operator's stack of that object" : `the stack ${ofUp} of \`pulumi up\``;
  // An object that two stacks have is of one name in both.
  const isTwin = description === owner.description;
  const where = isTwin || ofUp !== undefined ? ` in ${stack} (the owner ${holder}, not ${uid})` : "";
  const advice =
    live.kind === "Namespace"
      ? `${KEEP_CONTENTS}; that object must no longer name it`
      : "Give one of them another name";
  return (
    `${what} belongs to ${description}${where}. ${advice}; ` +
    `if that owner is gone, remove the label ${OWNER_UID_LABEL} of ${what}`
  );
}

/** What has to be done before an owner removes an object that is to stay. */
export const KEEP_CONTENTS = `To move it with all that is in it, first remove its annotation ${CREATED_ANNOTATION}`;

/**
 * Whether the owner of a live object is a predecessor of this one, as after a restore, or when a finalizer was removed by
 * force: a cluster has one object of a name at a time.
 */
function isPredecessor(live: LiveObject, { uid, description }: Owner): boolean {
  return (
    live.metadata.annotations?.[OWNER_ANNOTATION] === description &&
    isClusterUid(uid) &&
    isClusterUid(ownerUidOf(live) ?? "")
  );
}

/** Whether Kindstack has applied anything of this object, by its managed fields. */
export function wasApplied({ metadata }: LiveObject): boolean {
  return metadata.managedFields?.some(isOwnEntry) ?? false;
}

/**
 * A digest of the fields that Kindstack owns in a live object, by its managed fields, and of their values. The digest
 * changes with any applied field, and with no other field: another client that changes a field takes it from Kindstack's
 * entry, and a webhook that mutates others' writes changes the value alone.
 */
export function ownedFieldsDigest(object: LiveObject, ignored: readonly string[] = []): string {
  const known = ignored.length === 0 ? digests.get(object) : undefined;
  const digest = known ?? digestOf(object, ignored);
  if (ignored.length === 0) digests.set(object, digest);
  return digest;
}

/**
 * Whether the fields that Kindstack owns in a live object are those of a digest ({@link ownedFieldsDigest}).
 *
 * @param former the owner references that releases before applied, and that have been removed since
 */
export function isAsApplied(
  live: LiveObject,
  fields: string,
  ignored: readonly string[] | undefined,
  former: readonly OwnerReference[],
): boolean {
  if (ownedFieldsDigest(live, ignored) === fields) return true;
  return former.length > 0 && ownedFieldsDigest(withFormerReferences(live, former), ignored) === fields;
}

/** A live object as it was while it had these references, which Kindstack had applied. */
function withFormerReferences(live: LiveObject, former: readonly OwnerReference[]): LiveObject {
  const managed = Object.fromEntries(former.map(({ uid }) => [`k:${JSON.stringify({ uid })}`, {}]));
  const { managedFields = [], ownerReferences = [] } = live.metadata;
  const entries = managedFields.map((entry) => {
    if (!isOwnEntry(entry)) return entry;
    const { "f:metadata": metadata, ...fields } = entry.fieldsV1 ?? {};
    return {
      ...entry,
      fieldsV1: { ...fields, "f:metadata": { ...(metadata as object), "f:ownerReferences": managed } },
    };
  });
  const references = [...ownerReferences, ...former];
  return { ...live, metadata: { ...live.metadata, ownerReferences: references, managedFields: entries } };
}

/** Caches show the same object at many reconciles. */
const digests = new WeakMap<LiveObject, string>();

function digestOf(object: LiveObject, ignored: readonly string[]): string {
  const leaves = leavesOf(object.metadata.managedFields?.find(isOwnEntry) ?? {}, object);
  const counted = leaves.filter(([field]) => !ignored.some((path) => covers(path, field)));
  const sorted = counted.sort(([a], [b]) => (a < b ? -1 : 1));
  // The UID, which few know, keeps values from being guessed by their digest.
  return hash("sha256", canonicalJson([object.metadata.uid, sorted])).slice(0, 20);
}

export function managedPaths(entry: ManagedFieldsEntry, live: LiveObject): string[] {
  return leavesOf(entry, live).map(([path]) => path);
}

function leavesOf({ fieldsV1 = {} }: ManagedFieldsEntry, live: LiveObject): [string, unknown][] {
  const leaves: [string, unknown][] = [];
  if (Object.keys(fieldsV1).length > 0) collect(fieldsV1, live, "", leaves);
  return leaves;
}

function collect(fields: Record<string, unknown>, value: unknown, path: string, leaves: [string, unknown][]): void {
  const entries = Object.entries(fields);
  if (entries.length === 0) leaves.push([path, value]);
  for (const [key, child] of entries) {
    const { part, segment } = partAt(value, key, path === "");
    collect(child as Record<string, unknown>, part, path + segment, leaves);
  }
}

/** Whether an entry of an object's `managedFields` is of what Kindstack applied. */
export function isOwnEntry({ manager, operation, subresource }: ManagedFieldsEntry): boolean {
  return manager === FIELD_MANAGER && operation === "Apply" && !subresource;
}

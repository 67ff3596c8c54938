import { hash } from "node:crypto";
import type { Resource } from "@pulumi/pulumi/resource";
import { component } from "../../providers/dynamic";
import type { LiveObject } from "../../providers/kubernetes/client";
import { type AnyKind, type KindNames, statusOf } from "./kind";
import { namespaceOf, stackName } from "./object";

/*
 * The objects of a partition, which is one namespace or several, are components of a few stacks that they share. An object's
 * stack is chosen once and recorded on it with its finalizer, before anything is made; its first success adds it to the status.
 */

/** The number of an object's shared stack within its partition, from before its first update on. */
export const STACK_NUMBER_ANNOTATION = "kindstack.dev/stack-number";
/** The number of the partition, of an object whose namespace is none by itself. */
export const STACK_PARTITION_ANNOTATION = "kindstack.dev/stack-partition";
/**
 * About how many objects share one stack. With 100, a burst takes a quarter less of the engine's time and 120 MiB less
 * at its peak; but what fails together, such as all objects of a missing table, is tried again once for each stack.
 */
export const OBJECTS_PER_STACK = 500;

/** Marks the number of a partition: no namespace can have this name. */
const PARTITION_MARK = "~";
const LARGEST_NUMBER = 9_999;
const COMPONENT_PREFIX = "kindstack:";

/** One of the shared stacks of a kind. */
export interface StackAssignment {
  /** Whose objects share stacks: a namespace, or `~<number>` for several of them. */
  partition: string;
  /** Counted from 0 in each partition. */
  number: number;
}

/**
 * The partition of a namespace.
 *
 * @param partitions how many there are; without it, each namespace is one
 */
export function partitionOf(namespace: string, partitions: number | undefined): string {
  return partitionNamed(namespace, partitions && bucketOf(namespace, partitions));
}

/** The partition of a number, else that of a namespace alone. */
function partitionNamed(namespace: string, number: number | undefined): string {
  return number === undefined ? namespace : `${PARTITION_MARK}${number}`;
}

/** The name of a shared stack: as readable and as unmistakable as {@link stackName}. */
export function sharedStackName(kind: KindNames, { partition, number }: StackAssignment): string {
  const digest = hash("sha256", `${kind.plural}.${kind.group}/${partition}/#${number}`).slice(0, 12);
  const partitionName = partition.replace(PARTITION_MARK, "partition-");
  const readable = `${kind.plural}.${partitionName}`.replace(/[^a-zA-Z0-9._-]/g, "-").slice(0, 75);
  return `${readable}.${number}-${digest}`;
}

/**
 * The shared stack of this name that objects of a namespace may be in; `undefined` for any other name, and for one of
 * another namespace or kind.
 */
export function sharedStackAssignment(kind: KindNames, namespace: string, name: string): StackAssignment | undefined {
  const [, partition, last] = /(?:\.partition-(\d+))?\.(\d+)-[0-9a-f]{12}$/.exec(name) ?? [];
  const number = numberOf(last);
  if (number === undefined) return undefined;
  return [namespace, partitionNamed(namespace, numberOf(partition))]
    .map((candidate) => ({ partition: candidate, number }))
    .find((assignment) => sharedStackName(kind, assignment) === name);
}

/**
 * The shared stack that an object's own record names. What the record says of another namespace's stack does not count:
 * annotations can be written by any user who may edit the object.
 */
export function recordedAssignment(kind: AnyKind, object: LiveObject): StackAssignment | undefined {
  const { namespace = "", annotations } = object.metadata;
  const name = statusOf(object).stack?.name;
  const reported = name === undefined ? undefined : sharedStackAssignment(kind, namespace, name);
  if (reported !== undefined) return reported;
  const number = numberOf(annotations?.[STACK_NUMBER_ANNOTATION]);
  if (number === undefined) return undefined;
  return { partition: partitionNamed(namespace, numberOf(annotations?.[STACK_PARTITION_ANNOTATION])), number };
}

/** The annotations that record an object's stack; see {@link recordedAssignment}. */
export function assignmentAnnotations({ partition, number }: StackAssignment): Record<string, string> {
  return {
    [STACK_NUMBER_ANNOTATION]: String(number),
    ...(isOfSeveral(partition) && { [STACK_PARTITION_ANNOTATION]: partition.slice(PARTITION_MARK.length) }),
  };
}

/** Whether a partition is more than a namespace. */
export function isOfSeveral(partition: string): boolean {
  return partition.startsWith(PARTITION_MARK);
}

/** The stack of an object as far as it is known: the one that is recorded, else the first of its namespace. */
export function stackOf(kind: AnyKind, key: string, object: LiveObject | undefined): string {
  const own = stackName(kind, key);
  if (!kind.capabilities.sharedStacks) return own;
  if (object && statusOf(object).stack?.name === own) return own; // from before its kind shared stacks
  const recorded = object && recordedAssignment(kind, object);
  return sharedStackName(kind, recorded ?? { partition: namespaceOf(key), number: 0 });
}

/** An object as a component of a shared stack, the parent of its resources. */
export function objectComponent(kind: KindNames, key: string): Resource {
  return component(componentType(kind), key);
}

export function componentUrn(kind: KindNames, project: string, stack: string, key: string): string {
  return `urn:pulumi:${stack}::${project}::${componentType(kind)}::${key}`;
}

/** Whether a resource of a shared stack is an object's: its name is the object's key, or begins with it and a slash. */
export function belongsTo(key: string, resourceName: string): boolean {
  return resourceName === key || resourceName.startsWith(`${key}/`);
}

/** The key of the object that a resource of a shared stack is part of: `namespace/name`. */
export function keyOfResource(resourceName: string): string {
  return resourceName.split("/", 2).join("/");
}

/** Whether this is the type of an {@link objectComponent}. */
export function isObjectComponent(type: string): boolean {
  return type.startsWith(COMPONENT_PREFIX);
}

function componentType(kind: KindNames): string {
  return `${COMPONENT_PREFIX}${kind.group}/${kind.version}:${kind.kind}`;
}

/** The bucket of a name, counted from 0: the same in every process and version. Buckets are about equally large. */
export function bucketOf(name: string, buckets: number): number {
  return buckets === 1 ? 0 : hash("sha256", name, "buffer").readUInt32BE() % buckets;
}

function numberOf(text: string | undefined): number | undefined {
  if (text === undefined || !/^(0|[1-9]\d*)$/.test(text)) return undefined;
  const number = Number(text);
  return number <= LARGEST_NUMBER ? number : undefined;
}

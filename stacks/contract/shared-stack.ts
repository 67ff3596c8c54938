import { createHash } from "node:crypto";
import type { Resource } from "@pulumi/pulumi/resource";
import { component } from "../../providers/dynamic";
import type { LiveObject } from "../../providers/kubernetes/client";
import { type AnyKind, statusOf } from "./kind";
import { stackName } from "./object";

/*
 * Kinds of the granularity `namespace`: the objects of a namespace are components of a few stacks that they share. Which
 * one is an object's is chosen once and recorded on it before anything is made, in the same write as its finalizer; from
 * its first success on the status has it as well.
 */

/** The number of an object's shared stack within its namespace, from before its first update on. */
export const STACK_NUMBER_ANNOTATION = "kindstack.dev/stack-number";
/**
 * So many objects, more or less, share one stack. An update's time grows with all that its stack holds, that of many changes with
 * the square; each stack of a burst is another start of the CLI (`docs/benchmarks.md`).
 */
export const OBJECTS_PER_STACK = 500;

const LARGEST_NUMBER = 9_999;
const COMPONENT_PREFIX = "kindstack:";

type KindNames = Pick<AnyKind, "group" | "version" | "kind" | "plural">;

/** The name of a namespace's shared stack of this number: as readable and as unmistakable as {@link stackName}. */
export function sharedStackName(kind: KindNames, namespace: string, number: number): string {
  const digest = createHash("sha256")
    .update(`${kind.plural}.${kind.group}/${namespace}/#${number}`)
    .digest("hex")
    .slice(0, 12);
  const readable = `${kind.plural}.${namespace}`.replace(/[^a-zA-Z0-9._-]/g, "-").slice(0, 75);
  return `${readable}.${number}-${digest}`;
}

/** The number in a shared stack's name; `undefined` for any other name, and for one of another namespace or kind. */
export function sharedStackNumber(kind: KindNames, namespace: string, name: string): number | undefined {
  const number = numberOf(/\.(\d+)-[0-9a-f]{12}$/.exec(name)?.[1]);
  return number !== undefined && sharedStackName(kind, namespace, number) === name ? number : undefined;
}

/**
 * The shared stack that an object's own record names, by its number. What the record says of another namespace's stack
 * does not count: annotations can be written by whoever may edit the object.
 */
export function recordedStackNumber(kind: AnyKind, object: LiveObject): number | undefined {
  const { namespace = "", annotations } = object.metadata;
  const name = statusOf(object).stack?.name;
  return (
    (name === undefined ? undefined : sharedStackNumber(kind, namespace, name)) ??
    numberOf(annotations?.[STACK_NUMBER_ANNOTATION])
  );
}

/** The stack of an object as far as it is known: the one that is recorded, else the first that it could be put in. */
export function stackOf(kind: AnyKind, key: string, object: LiveObject | undefined): string {
  if (kind.granularity === "object") return stackName(kind, key);
  const [namespace = ""] = key.split("/");
  const recorded = object && statusOf(object).stack?.name;
  if (recorded === stackName(kind, key)) return recorded; // from before its kind shared stacks
  return sharedStackName(kind, namespace, (object && recordedStackNumber(kind, object)) ?? 0);
}

/** An object as a component, the parent of all that it stands for, in a stack that others share. */
export function objectComponent(kind: KindNames, key: string): Resource {
  return component(componentType(kind), key);
}

export function componentUrn(kind: KindNames, project: string, stack: string, key: string): string {
  return `urn:pulumi:${stack}::${project}::${componentType(kind)}::${key}`;
}

/**
 * Whether a resource of a shared stack is an object's: its name is the object's key, or begins with it and a slash. A
 * URN has its parent's type but not its name, so names have to differ throughout the stack anyway.
 */
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

function numberOf(text: string | undefined): number | undefined {
  if (text === undefined || !/^(0|[1-9]\d*)$/.test(text)) return undefined;
  const number = Number(text);
  return number <= LARGEST_NUMBER ? number : undefined;
}

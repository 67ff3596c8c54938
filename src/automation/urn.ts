import { GUARD_TYPE } from "../../providers/urn";

export { nameOf } from "../../providers/urn";

/** What the types of resources of dynamic providers begin with. */
export const DYNAMIC = "pulumi-nodejs:dynamic/";

/** `Namespace`: what people call a resource's type. */
export function typeWord(type: string): string {
  return type.split(":").at(-1) ?? type;
}

export function stackOf(urn: string): string {
  return urn.split("::")[0]?.replace("urn:pulumi:", "") ?? "";
}

/** Whether the resource is no program's: the stack itself, providers, and the guard. */
export function isScaffolding(urn: string): boolean {
  return ["pulumi:pulumi:Stack", GUARD_TYPE].includes(typeOf(urn)) || isProvider(urn);
}

export function isProvider(urn: string): boolean {
  return typeOf(urn).startsWith("pulumi:providers:");
}

/** Whether the resource is a Kubernetes object, which can be found by its owner's mark. */
export function isKubernetesObject(urn: string): boolean {
  return typeOf(urn).startsWith(`${DYNAMIC}kubernetes:`);
}

/** The type of a component's child is the component's type, a $ and the child's own type. */
export function typeOf(urn: string): string {
  return urn.split("::")[2]?.split("$").at(-1) ?? "";
}

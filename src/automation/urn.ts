import { keyOfResource } from "../../stacks/contract/shared-stack";

/** The name of a resource: what follows the type in its URN. */
export function nameOf(urn: string): string {
  return urn.split("::").slice(3).join("::");
}

/** Of a resource in a shared stack, the key of the object that it is part of: `namespace/name`. */
export function keyOf(urn: string): string {
  return keyOfResource(nameOf(urn));
}

/** Whether it is what every stack has, whatever is in it: the stack itself, and providers. */
export function isScaffolding(urn: string): boolean {
  // Below a component, a resource has that one's type and a $ before its own.
  const type = urn.split("::")[2]?.split("$").at(-1) ?? "";
  return type === "pulumi:pulumi:Stack" || type.startsWith("pulumi:providers:");
}

/** Components as targets, for a refresh with all below them: it does not find the provider of what is no target itself. */
export function withBelow(components: readonly string[], below: readonly string[]): string[] {
  return [...new Set([...components, ...below])];
}

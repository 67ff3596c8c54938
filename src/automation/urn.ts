/** What the types of resources of dynamic providers begin with. */
export const DYNAMIC = "pulumi-nodejs:dynamic/";

/** The name of a resource: what follows the type in its URN. */
export function nameOf(urn: string): string {
  return urn.split("::").slice(3).join("::");
}

export function stackOf(urn: string): string {
  return urn.split("::")[0]?.replace("urn:pulumi:", "") ?? "";
}

/** Whether it is what every stack has, whatever is in it: the stack itself, and providers. */
export function isScaffolding(urn: string): boolean {
  const type = typeOf(urn);
  return type === "pulumi:pulumi:Stack" || type.startsWith("pulumi:providers:");
}

/** Whether it is an object of Kubernetes, which its owner's mark leads to. */
export function isKubernetesObject(urn: string): boolean {
  return typeOf(urn).startsWith(`${DYNAMIC}kubernetes:`);
}

/** Below a component, a resource has that one's type and a $ before its own. */
function typeOf(urn: string): string {
  return urn.split("::")[2]?.split("$").at(-1) ?? "";
}

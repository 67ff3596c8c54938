/** The name of a resource: what follows the type in its URN. */
export function nameOf(urn: string): string {
  return urn.split("::").slice(3).join("::");
}

export function stackOf(urn: string): string {
  return urn.split("::")[0]?.replace("urn:pulumi:", "") ?? "";
}

/** Whether it is what every stack has, whatever is in it: the stack itself, and providers. */
export function isScaffolding(urn: string): boolean {
  // Below a component, a resource has that one's type and a $ before its own.
  const type = urn.split("::")[2]?.split("$").at(-1) ?? "";
  return type === "pulumi:pulumi:Stack" || type.startsWith("pulumi:providers:");
}

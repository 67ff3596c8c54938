/** The name of a resource: what follows the type in its URN. */
export function nameOf(urn: string): string {
  return urn.split("::").slice(3).join("::");
}

/** The type of the guard of a stack: see `guard.ts`. */
export const GUARD_TYPE = "pulumi-nodejs:dynamic/kindstack:Guard";

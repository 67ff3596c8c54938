import type { LiveObject } from "./types";

/**
 * What the API server tells of an object. An object that is not seen need not be absent: its type may not be served in the
 * version asked for, the request may have failed, or be forbidden.
 */
export type Lookup =
  | { readonly outcome: "found"; readonly object: LiveObject }
  | { readonly outcome: "absent" }
  | { readonly outcome: "unknown"; readonly error: unknown };

/** The object of a look-up; `undefined` only when its absence is certain. @throws the error, where that is unknown */
export async function known(asked: Lookup | Promise<Lookup>): Promise<LiveObject | undefined> {
  const lookup = await asked;
  switch (lookup.outcome) {
    case "found":
      return lookup.object;
    case "absent":
      return undefined;
    case "unknown":
      throw lookup.error;
  }
}

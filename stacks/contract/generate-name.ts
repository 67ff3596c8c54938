import { randomBytes } from "node:crypto";

/** What the API server leaves out of generated names, so that they spell nothing. */
const ALPHABET = "bcdfghjklmnpqrstvwxz2456789";
/** The longest name that the API server makes of `generateName` keeps 58 bytes of it. */
const MAX_PREFIX = 58;

/**
 * A name as the API server generates them, for what must be known by its name before it exists.
 *
 * @param seed 5 bytes or more; the same ones give the same name
 */
export function generateName(prefix: string, seed: Uint8Array = randomBytes(5)): string {
  const suffix = Array.from(seed.subarray(0, 5), (byte) => ALPHABET[byte % ALPHABET.length]).join("");
  return prefix.slice(0, MAX_PREFIX) + suffix;
}

import { createSecretKey, type KeyObject, randomBytes, scrypt } from "node:crypto";
import { promisify } from "node:util";
import { passphraseOf, type StateProtection } from "../config";

const KEY_BYTES = 32;
/** About a tenth of a second and 32 MiB: a digest does not help to guess the passphrase. */
const COST = { N: 2 ** 15, r: 8, p: 1, maxmem: 64 * 2 ** 20 };
const derive = promisify<string, string, number, object, Buffer>(scrypt);

/**
 * The key of the digests of plans, made when it is needed first. With a passphrase it is made of that: all replicas, and previews
 * elsewhere with the same passphrase, give the same digests.
 *
 * With a key service alone there is no secret to make it of. It is the process's own then: a restart, or another replica, gives
 * other digests, and what was approved before waits for another approval.
 */
export function planKey(protection: StateProtection): () => Promise<KeyObject> {
  let made: Promise<KeyObject> | undefined;
  const make = async () => {
    const secret = await passphraseOf(protection);
    if (secret === undefined) return createSecretKey(randomBytes(KEY_BYTES));
    return createSecretKey(await derive(secret, "kindstack plans", KEY_BYTES, COST));
  };
  return () => {
    made ??= make();
    return made;
  };
}

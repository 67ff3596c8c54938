import { createDecipheriv, pbkdf2 } from "node:crypto";
import { promisify } from "node:util";
import type { StackState } from "../automation/stack-state";

/** Pulumi's mark of a secret in a state. */
const SECRET = '"4dabf18193072939515e22adb298388d":"1b47061264138c4ac30d75fd1eb44270"';
/** What Pulumi encrypts beside the salt, to recognize the passphrase. */
const KNOWN = "pulumi";
const ROUNDS = 1_000_000;
const TAG_BYTES = 16;

const derive = promisify(pbkdf2);

/** The salt of a state that a passphrase encrypts; `undefined` for one without secrets, or with a key service. */
export function saltOfSecrets(state: StackState): string | undefined {
  const { type, state: { salt } = {} } = (state.deployment.secrets_providers ?? {}) as {
    type?: string;
    state?: { salt?: string };
  };
  return type === "passphrase" && JSON.stringify(state.deployment.resources ?? []).includes(SECRET) ? salt : undefined;
}

/** Whether a passphrase is the one that a salt was made with: `v1:<salt>:v1:<nonce>:<text>`, in Base64. */
export async function isPassphraseOf(salt: string, passphrase: string): Promise<boolean> {
  const [, seed = "", , nonce = "", text = ""] = salt.split(":");
  const bytes = Buffer.from(text, "base64");
  const key = await derive(passphrase, Buffer.from(seed, "base64"), ROUNDS, 32, "sha256");
  try {
    const decipher = createDecipheriv("aes-256-gcm", key, Buffer.from(nonce, "base64"));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    return Buffer.concat([decipher.update(bytes.subarray(0, -TAG_BYTES)), decipher.final()]).toString() === KNOWN;
  } catch {
    return false; // the tag does not fit, or it is no salt
  }
}

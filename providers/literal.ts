import { Output, output } from "@pulumi/pulumi/output";
import type { Properties } from "./provider";

/*
 * Pulumi's wire format gives some texts a meaning: seven strings mean values that are not known yet, and an object
 * with a certain key is a secret, an asset or the like (`resource/plugin/rpc.go`, `resource/sig/sig.go`). A user may write
 * them wherever a user may write a text. They cross the engine, and are in its state, with a prefix.
 */

const PREFIX = "literal:";
const UNKNOWN = [
  "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7", // unknown boolean
  "3eeb2bf0-c639-47a8-9e75-3b44932eb421", // unknown number
  "04da6b54-80e4-46f7-96ec-b56ff0331ba9", // unknown string
  "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2", // unknown array
  "030794c1-ac77-496b-92df-f27374a8bd58", // unknown asset
  "e48ece36-62e2-4504-bad9-02848725956a", // unknown archive
  "dd056dcd-154b-4c76-9bd3-c8f88648b5ff", // unknown object
];
const SIGNATURE_KEY = "4dabf18193072939515e22adb298388d";
const RESERVED = [...UNKNOWN, SIGNATURE_KEY];
/** With the prefix any number of times, so that what already looks escaped comes back as it was. */
const NEEDS_PREFIX = new RegExp(`^(?:${PREFIX})*(?:${RESERVED.join("|")})$`);

/**
 * A value, with a prefix before each string and key in it that the engine would not take literally. What is wrapped in
 * outputs or promises stays so, and all around it stays plain.
 */
export function escapeReserved<T>(value: T): T {
  return mapTexts(value, (text) => (NEEDS_PREFIX.test(text) ? PREFIX + text : text)) as T;
}

/** The value before {@link escapeReserved}. */
export function unescapeReserved<T>(value: T): T {
  return mapTexts(value, (text) =>
    text.startsWith(PREFIX) && NEEDS_PREFIX.test(text) ? text.slice(PREFIX.length) : text,
  ) as T;
}

/** Whether a value that the engine gave is not known yet: in a preview, what comes from a resource that is to be made. */
function isUnknown(value: unknown): boolean {
  return UNKNOWN.includes(value as string);
}

/** Where a value is not known, and what stands there. */
export type Unknown = [path: string[], text: string];

/** All that is not known of a value. */
export function findUnknown(value: unknown, path: string[] = []): Unknown[] {
  if (typeof value !== "object" || value === null) return isUnknown(value) ? [[path, value as string]] : [];
  return Object.entries(value).flatMap(([key, item]) => findUnknown(item, [...path, key]));
}

/** A value that is known by now, as it was when it was not. */
export function withUnknown<T>(value: T, unknown: readonly Unknown[]): T {
  return unknown.reduce((known, [path, text]) => replaceAt(known, path, text) as T, value);
}

function replaceAt(value: unknown, [key, ...rest]: readonly string[], text: string): unknown {
  if (key === undefined) return text;
  if (Array.isArray(value))
    return value.map((item, index) => (String(index) === key ? replaceAt(item, rest, text) : item));
  if (typeof value !== "object" || value === null) return value;
  return { ...value, [key]: replaceAt((value as Properties)[key], rest, text) };
}

/** What people read in place of what is known only after the update. */
export const NOT_KNOWN = "[unknown]";

/** A value of the engine's events, as people read it: with `[unknown]` for what is known only after the update. */
export function describeUnknown<T>(value: T): T {
  return mapTexts(value, (text) => (isUnknown(text) ? NOT_KNOWN : text)) as T;
}

/** What a signature says of a secret; its value is encrypted in a state. */
const SECRET_SIGNATURE = "1b47061264138c4ac30d75fd1eb44270";

/** What people read in place of a secret; the engine writes the same. */
export const MASKED = "[secret]";

/** Whether a text is anywhere in a value. */
export function holds(value: unknown, text: string): boolean {
  if (typeof value !== "object" || value === null) return value === text;
  return Object.values(value).some((part) => holds(part, text));
}

/** A value as the engine takes it for a secret, which it encrypts in a state. */
export function sealed(value: unknown): Properties {
  return { [SIGNATURE_KEY]: SECRET_SIGNATURE, value };
}

/** The values before {@link sealed} in all that a value holds. */
export function unsealed<T>(value: T): T {
  return replaceSecrets(value, (secret) => unsealed(secret.value)) as T;
}

/** Properties of a state or of an event, as people read them: {@link MASKED} in place of what is encrypted. */
export function maskSecrets<T>(value: T): T {
  return replaceSecrets(value, () => MASKED) as T;
}

function replaceSecrets(value: unknown, replace: (secret: Properties) => unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => replaceSecrets(item, replace));
  if ((value as Properties)[SIGNATURE_KEY] === SECRET_SIGNATURE) return replace(value as Properties);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, replaceSecrets(item, replace)]));
}

/** Whether some value is yet to come: a library wrapped it, as kubernetesx does with all that it makes. */
export function isWrapped(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return Output.isInstance(value) || value instanceof Promise || Object.values(value).some(isWrapped);
}

/** All texts of a value, keys included, changed. The same value where no text changes, which is almost always. */
export function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === "string") return change(value);
  if (typeof value !== "object" || value === null) return value;
  if (Output.isInstance(value) || value instanceof Promise) {
    return output(value).apply((resolved) => mapTexts(resolved, change));
  }
  if (Array.isArray(value)) {
    const items = value.map((item) => mapTexts(item, change));
    return items.every((item, index) => item === value[index]) ? value : items;
  }
  const before = Object.entries(value);
  const after = before.map(([key, item]) => [change(key), mapTexts(item, change)] as const);
  const isSame = after.every(([key, item], index) => key === before[index]?.[0] && item === before[index]?.[1]);
  return isSame ? value : Object.fromEntries(after);
}

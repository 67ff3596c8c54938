import type { LiveObject } from "../../providers/kubernetes/client";
import { statusOf } from "../../stacks/contract/kind";

/** Texts that only one object has make room for others. */
const MOST_TEXTS = 1_000;

/**
 * Makes what replaces texts of parsed objects, in place, by the same text of an earlier object: objects at rest have their type,
 * finalizers and conditions in common. A copy of its own takes each of them 0.3 KiB.
 */
export function textSharing(): (object: LiveObject) => LiveObject {
  const texts = new Map<string, string>();
  const shared = (text: string) => {
    const known = texts.get(text);
    if (known !== undefined) return known;
    if (texts.size >= MOST_TEXTS) texts.clear();
    texts.set(text, text);
    return text;
  };
  // Whatever it is: a CRD of other hands may allow anything in a status.
  const shareIn = (value: unknown) => {
    if (typeof value !== "object" || value === null) return;
    const items = value as Record<string, unknown>;
    for (const [key, item] of Object.entries(items)) {
      if (typeof item === "string") items[key] = shared(item);
      else shareIn(item);
    }
  };
  return (object) => {
    object.apiVersion = shared(object.apiVersion);
    object.kind = shared(object.kind);
    shareIn(object.metadata.finalizers);
    shareIn(statusOf(object).conditions);
    return object;
  };
}

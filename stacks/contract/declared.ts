import { Clean, Clone, Default } from "typebox/value";
import { TerminalError } from "../../providers/errors";
import type { LiveObject } from "../../providers/kubernetes/client";
import { type AnyKind, parseObject } from "./kind";
import type { KindObject } from "./object";
import { violatedRules } from "./rules";

/**
 * Parses an object from a file, which no API server has seen: with the schema's defaults, without unknown fields, and by the
 * kind's schema and rules.
 *
 * @throws TerminalError `Invalid` naming the field and what is allowed
 */
export async function parseDeclared(kind: AnyKind, manifest: LiveObject): Promise<KindObject> {
  const spec = Default(kind.spec, Clone(manifest.spec ?? {}));
  const unknown = surplusField(spec, Clean(kind.spec, Clone(spec)));
  if (unknown !== undefined) throw new TerminalError("Invalid", `spec.${unknown}: there is no such field`);
  const declared = { ...manifest, spec };
  const object = parseObject(kind, declared);
  const violated = await violatedRules(kind, declared);
  if (violated.length > 0) throw new TerminalError("Invalid", violated.join("; "));
  return object;
}

/** The path of the first field that a value has and another, which is a part of it, has not. */
function surplusField(value: unknown, part: unknown): string | undefined {
  if (typeof value !== "object" || typeof part !== "object" || value === null || part === null) return undefined;
  for (const [name, inner] of Object.entries(value)) {
    if (!Object.hasOwn(part, name)) return name;
    const found = surplusField(inner, part[name as keyof typeof part]);
    if (found !== undefined) return `${name}.${found}`;
  }
  return undefined;
}

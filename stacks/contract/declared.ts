import { Clean, Clone, Default, Diff, Pointer } from "typebox/value";
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
  const unknown = Diff(spec, Clean(kind.spec, Clone(spec))).find(({ type }) => type === "delete");
  if (unknown !== undefined) {
    const path = ["spec", ...Pointer.Indices(unknown.path)].join(".");
    throw new TerminalError("Invalid", `${path}: there is no such field`);
  }
  const declared = { ...manifest, spec };
  const object = parseObject(kind, declared);
  const violated = await violatedRules(kind, declared);
  if (violated.length > 0) throw new TerminalError("Invalid", violated.join("; "));
  return object;
}

import { errorMessageOf } from "../../providers/errors";
import type { LiveObject } from "../../providers/kubernetes/client";
import { parseDeclared } from "../../stacks/contract/declared";
import type { AnyKind } from "../../stacks/contract/kind";
import type { KindObject } from "../../stacks/contract/object";

/** An object that may be previewed, with its schema's defaults, or why it may not. */
export type Parsed = { object: KindObject } | { invalid: string };

/** Names as the API server takes them for objects of any kind. */
const NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const MAX_NAME = 253;

/**
 * Validates an object by the kind's schema and rules, as far as that goes without the API server, whose admission is not
 * asked.
 */
export async function validateObject(kind: AnyKind, manifest: LiveObject): Promise<Parsed> {
  const { name } = manifest.metadata;
  if (name.length > MAX_NAME || !NAME.test(name))
    return { invalid: `metadata.name: "${name}" is no name of an object` };
  try {
    return { object: await parseDeclared(kind, manifest) };
  } catch (error) {
    return { invalid: errorMessageOf(error) };
  }
}

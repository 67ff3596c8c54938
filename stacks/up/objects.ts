import { hash } from "node:crypto";
import { errorMessageOf, TerminalError } from "../../providers/errors";
import type { Manifest } from "../../providers/kubernetes/client";
import type { Owner } from "../../providers/kubernetes/ownership";
import { convertObject } from "../contract/convert";
import { parseDeclared } from "../contract/declared";
import { type AnyKind, kindApiVersion, kindName, ownerDescription } from "../contract/kind";
import { kindOf } from "../contract/kind-name";
import type { SourcedManifest } from "../contract/manifests";
import { type KindObject, objectKey, stackName } from "../contract/object";

/** An object of a file, and what it needs to be run without a cluster that has it. */
export interface StackObject {
  kind: AnyKind;
  /** `namespace/name`, or `name`. */
  key: string;
  object: KindObject;
  owner: Owner;
}

/**
 * The objects that manifests declare, with defaults, and validated by their kinds' schemas and rules. As with `kubectl
 * apply`, the namespace is `default` where none is named.
 *
 * @param stack the stack that they are run in; in another stack, they are another owner
 * @throws TerminalError with all problems, each with its file
 */
export async function declaredObjects(
  manifests: readonly SourcedManifest[],
  kinds: readonly AnyKind[],
  stack: string,
): Promise<StackObject[]> {
  const problems: string[] = [];
  const objects = new Map<string, StackObject>();
  for (const { manifest, file } of manifests) {
    try {
      const declared = await declaredObject(manifest, kinds, stack);
      const id = `${kindName(declared.kind)}/${declared.key}`;
      if (objects.has(id)) throw new TerminalError("Duplicate", `${id} is declared twice`);
      objects.set(id, declared);
    } catch (error) {
      problems.push(`${file}: ${manifest.kind} ${objectKey(manifest.metadata)}: ${errorMessageOf(error)}`);
    }
  }
  if (problems.length > 0) throw new TerminalError("Invalid", problems.join("\n"));
  return [...objects.values()];
}

/** Whether a stack is the one that the operator would use for this object, so that either can take over from the other. */
export function isOwnStack({ kind, key }: StackObject, stack: string): boolean {
  return stackName(kind, key) === stack;
}

async function declaredObject(written: Manifest, kinds: readonly AnyKind[], stack: string): Promise<StackObject> {
  const kind = kindOf(kinds, written);
  if (kind === undefined) {
    const known = kinds.map((other) => `${other.kind} in ${kindApiVersion(other)}`).join(", ");
    throw new TerminalError("UnknownKind", `${written.apiVersion} is not one of Kindstack's: ${known}`);
  }
  const manifest = convertObject(kind, written);
  const { namespace = "default", ...others } = manifest.metadata;
  const metadata = kind.scope === "Namespaced" ? { ...others, namespace } : others;
  const key = objectKey(metadata);
  const owner = { uid: ownerUid(kind, key, stack), description: ownerDescription(kind, key) };
  const object = await parseDeclared(kind, {
    ...manifest,
    metadata: { ...metadata, name: metadata.name ?? "", uid: owner.uid, resourceVersion: "0", generation: 1 },
  });
  return { kind, key, object, owner };
}

/** Who owns what the object makes, where no cluster has given it a UID: the object of this name, in this stack. */
function ownerUid(kind: AnyKind, key: string, stack: string): string {
  return `stack-${hash("sha256", `${stack}|${kindName(kind)}/${key}`).slice(0, 32)}`;
}

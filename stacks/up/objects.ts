import { hash } from "node:crypto";
import { errorMessageOf, TerminalError } from "../../providers/errors";
import type { Owner } from "../../providers/kubernetes/ownership";
import { stackOwnerUid } from "../../providers/kubernetes/ownership";
import { parseDeclared } from "../contract/declared";
import { type AnyKind, kindApiVersion, kindName, ownerOf } from "../contract/kind";
import { type KindObject, objectKey, stackName } from "../contract/object";
import type { SourcedDocument } from "../contract/parse-manifests";
import { type DeclaredManifest, selectDeclared } from "../contract/select-manifests";

/** An object of a file, and what it needs to be run without a cluster that has it. */
export interface StackObject {
  kind: AnyKind;
  /** `namespace/name`, or `name`. */
  key: string;
  object: KindObject;
  owner: Owner;
}

/**
 * The objects that manifests declare, with defaults, and validated by their kinds' schemas and rules.
 *
 * @param stack the stack that they are run in; in another stack, they are another owner
 */
export async function declaredObjects(
  manifests: readonly SourcedDocument[],
  kinds: readonly AnyKind[],
  stack: string,
  namespace: string,
): Promise<StackObject[]> {
  const { declared, refused, unnamed, repeated } = selectDeclared(kinds, namespace, manifests);
  const messages = [...unnamed, ...repeated].map(({ file, message }) => `${file}: ${message}`);
  messages.push(
    ...refused.map(({ kind, metadata, file, message }) => `${file}: ${kind.kind} ${objectKey(metadata)}: ${message}`),
  );
  const objects: StackObject[] = [];
  for (const one of declared) {
    try {
      objects.push(await declaredObject(one, stack));
    } catch (error) {
      const { manifest, file } = one;
      messages.push(`${file}: ${manifest.kind} ${objectKey(manifest.metadata)}: ${errorMessageOf(error)}`);
    }
  }
  if (messages.length > 0) throw new TerminalError("Invalid", messages.join("\n"));
  if (objects.length === 0 && manifests.length > 0) throw new TerminalError("NoManifest", noneOf(manifests, kinds));
  return objects;
}

function noneOf([first, ...others]: readonly SourcedDocument[], kinds: readonly AnyKind[]): string {
  const known = kinds.map((kind) => `${kind.kind} in ${kindApiVersion(kind)}`).join(", ");
  const more = others.length > 0 ? ` and ${others.length} more` : "";
  return `${first?.file}: ${first?.manifest.kind}${more} not of Kindstack's kinds: ${known}`;
}

/** Whether the operator would use this stack for the object: then the operator and `pulumi up` can hand over to each other. */
export function isOwnStack({ kind, key }: StackObject, stack: string): boolean {
  return stackName(kind, key) === stack;
}

async function declaredObject({ kind, manifest }: DeclaredManifest, stack: string): Promise<StackObject> {
  const { metadata } = manifest;
  const key = objectKey(metadata);
  const owner = ownerOf(kind, manifest, ownerUid(kind, key, stack));
  const object = await parseDeclared(kind, {
    ...manifest,
    metadata: { ...metadata, uid: owner.uid, resourceVersion: "0", generation: 1 },
  });
  return { kind, key, object, owner };
}

/** Who owns what the object makes, where no cluster has given it a UID: the object of this name, in this stack. */
function ownerUid(kind: AnyKind, key: string, stack: string): string {
  return stackOwnerUid(stack, hash("sha256", `${stack}|${kindName(kind)}/${key}`));
}

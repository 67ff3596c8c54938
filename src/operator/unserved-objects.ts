import type { Logger } from "pino";
import { errorMessageOf } from "../../providers/errors";
import type { KubernetesClient, LiveObject } from "../../providers/kubernetes/client";
import { DEFINITION_TYPE, INSTALLED_LABELS } from "../../stacks/contract/crd";
import { type AnyKind, kindName } from "../../stacks/contract/kind";
import { FINALIZER, objectKey } from "../../stacks/contract/object";

/** A CustomResourceDefinition, as far as it says where its objects are. */
interface Definition extends LiveObject {
  spec: { group: string; names: { kind: string }; versions: { name: string; storage: boolean }[] };
}

/**
 * Warns of objects of kinds that Kindstack has installed and this operator does not serve, such as after a kind or its group was
 * renamed: no deletion of theirs ends.
 */
export async function warnOfUnserved(
  client: Pick<KubernetesClient, "list">,
  kinds: readonly AnyKind[],
  logger: Logger,
): Promise<void> {
  const served = new Set(kinds.map(kindName));
  const labels = Object.entries(INSTALLED_LABELS).map(([label, value]) => `${label}=${value}`);
  try {
    const { items } = await client.list(DEFINITION_TYPE, { labelSelector: labels.join(",") });
    for (const { metadata, spec } of items as unknown as Definition[]) {
      const version = spec.versions.find(({ storage }) => storage)?.name;
      if (served.has(metadata.name)) continue;
      const objects = await client.list({ apiVersion: `${spec.group}/${version}`, kind: spec.names.kind });
      const held = objects.items.filter((object) => object.metadata.finalizers?.includes(FINALIZER));
      const [first] = held;
      if (first === undefined) continue;
      const facts = { kind: metadata.name, objects: held.length, example: objectKey(first.metadata) };
      logger.warn(facts, "objects of a kind that is not served keep their finalizers; serve the kind to delete them");
    }
  } catch (error) {
    logger.debug({ reason: errorMessageOf(error) }, "cannot look for objects of kinds that are not served");
  }
}

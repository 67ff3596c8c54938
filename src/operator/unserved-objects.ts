import type { Logger } from "pino";
import { errorMessageOf } from "../../providers/errors";
import { reviewOwnAccess } from "../../providers/kubernetes/access-review";
import type { KubernetesClient, LiveObject } from "../../providers/kubernetes/client";
import { DEFINITION_TYPE, INSTALLED_LABELS } from "../../stacks/contract/crd";
import { type AnyKind, kindName } from "../../stacks/contract/kind";
import { FINALIZER, objectKey } from "../../stacks/contract/object";

/** A CustomResourceDefinition, as far as it says where its objects are. */
interface Definition extends LiveObject {
  spec: { group: string; names: { kind: string; plural: string }; versions: { name: string; storage: boolean }[] };
}

/**
 * Warns of objects of kinds that Kindstack has installed and this operator does not serve, such as after a kind or its group was
 * renamed: no deletion of theirs ends.
 */
export async function warnOfUnserved(
  client: Pick<KubernetesClient, "list" | "json">,
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
      const { group, names } = spec;
      // Its rights are those that the kinds which it serves need.
      if (!(await reviewOwnAccess(client, { group, resource: names.plural, verb: "list" }))) {
        const message =
          "objects of a kind that is not served may keep their finalizers: the operator may not list them";
        logger.warn({ kind: metadata.name }, message);
        continue;
      }
      const { items: objects } = await client.list({ apiVersion: `${group}/${version}`, kind: names.kind });
      const held = objects.filter((object) => object.metadata.finalizers?.includes(FINALIZER));
      const [first] = held;
      if (first === undefined) continue;
      const facts = { kind: metadata.name, objects: held.length, example: objectKey(first.metadata) };
      logger.warn(facts, "objects of a kind that is not served keep their finalizers; serve the kind to delete them");
    }
  } catch (error) {
    logger.debug({ reason: errorMessageOf(error) }, "cannot look for objects of kinds that are not served");
  }
}

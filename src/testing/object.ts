import Value from "typebox/value";
import type { LiveObject } from "../../providers/kubernetes/client";
import { type Kind, kindApiVersion, parseObject } from "../../stacks/contract/kind";
import type { KindObject } from "../../stacks/contract/object";

/**
 * An object as the operator hands it to a program: validated by the kind's schema, with the schema's defaults.
 *
 * @param metadata what differs from an object `test` in the namespace `default`
 * @throws TerminalError naming the field, its value and what is allowed
 */
export function objectOf<Spec, Status>(
  kind: Kind<Spec, Status>,
  spec: NoInfer<Partial<Spec>>,
  metadata: Partial<KindObject["metadata"]> = {},
): KindObject<Spec, Status> & LiveObject {
  const namespace = kind.scope === "Namespaced" ? { namespace: "default" } : {};
  const object = {
    apiVersion: kindApiVersion(kind),
    kind: kind.kind,
    metadata: { name: "test", ...namespace, uid: "uid-of-test", resourceVersion: "1", generation: 1, ...metadata },
    spec: Value.Default(kind.spec, structuredClone(spec)),
  } as LiveObject;
  return parseObject(kind, object) as KindObject<Spec, Status> & LiveObject;
}

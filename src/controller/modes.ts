import { type KubernetesClient, known, type LiveObject } from "../../providers/kubernetes/client";
import { type Settings, settingsOf } from "../../stacks/contract/annotations";
import type { AnyKind } from "../../stacks/contract/kind";
import { MODE_ANNOTATION, type Mode } from "../../stacks/contract/mode";
import type { ObjectChange } from "../cache/change";
import type { InformerFactory } from "../cache/informer-factory";

const NAMESPACE = { apiVersion: "v1", kind: "Namespace" } as const;

/** See {@link watchModes}. */
export type ReadSettings = Awaited<ReturnType<typeof watchModes>>;

/**
 * Watches the modes that namespaces set for the objects in them.
 *
 * @param configuredMode the mode of a kind, where the operator is told one
 * @param onChange told of each namespace whose mode is another now
 * @returns the settings of an object of a kind; throws an ApiError when the API server cannot tell of a new namespace
 */
export async function watchModes(
  client: Pick<KubernetesClient, "get">,
  informers: InformerFactory,
  configuredMode: ((kind: AnyKind) => Mode | undefined) | undefined,
  onChange: (namespace: string) => void,
) {
  const options = {
    transform: onlyMode,
    onChange: (change: ObjectChange) => {
      const isOther = change.type === "modified" && textOf(change.previous) !== textOf(change.object);
      if (isOther) onChange(change.object.metadata.name);
    },
  };
  const namespaces = await informers.create(NAMESPACE, options, "modes of namespaces");
  return async (kind: AnyKind, object: LiveObject): Promise<Settings> => {
    const configured = configuredMode?.(kind);
    if (kind.scope === "Cluster") return settingsOf(object, undefined, configured);
    const name = object.metadata.namespace ?? "";
    // An object may be seen before its namespace is.
    const namespace = namespaces.get(name) ?? (await known(client.get(NAMESPACE, name)));
    return settingsOf(object, namespace, configured);
  };
}

function textOf({ metadata }: LiveObject): string | undefined {
  return metadata.annotations?.[MODE_ANNOTATION];
}

/** All that is kept of a namespace. */
function onlyMode(namespace: LiveObject): LiveObject {
  const { apiVersion, kind } = namespace;
  const { name, uid, resourceVersion } = namespace.metadata;
  const text = textOf(namespace);
  const annotations = text === undefined ? undefined : { [MODE_ANNOTATION]: text };
  return { apiVersion, kind, metadata: { name, uid, resourceVersion, ...(annotations && { annotations }) } };
}

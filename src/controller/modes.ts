import { isApiError, type KubernetesClient, type LiveObject } from "../../providers/kubernetes/client";
import { obeyedAnnotations } from "../../stacks/contract/annotations";
import type { AnyKind } from "../../stacks/contract/kind";
import { MODE_ANNOTATION, type Mode, modeOfNamespace, strictest } from "../../stacks/contract/mode";
import type { ObjectChange } from "../cache/change";
import type { InformerFactory } from "../cache/informer-factory";
import type { Store } from "../cache/store";

const NAMESPACE = { apiVersion: "v1", kind: "Namespace" } as const;

/** The mode that holds for an object, or why a namespace's cannot be understood. */
export interface SetMode {
  mode: Mode;
  problem?: string;
}

/** The modes that namespaces set for the objects in them. */
export class NamespaceModes {
  private constructor(
    private readonly client: Pick<KubernetesClient, "get">,
    private readonly namespaces: Pick<Store, "get">,
  ) {}

  /** @param onChange told of each namespace whose mode is another now */
  static async watch(
    client: Pick<KubernetesClient, "get">,
    informers: InformerFactory,
    onChange: (namespace: string) => void,
  ): Promise<NamespaceModes> {
    const options = {
      transform: onlyMode,
      onChange: (change: ObjectChange) => {
        const isOther = change.type === "modified" && textOf(change.previous) !== textOf(change.object);
        if (isOther) onChange(change.object.metadata.name);
      },
    };
    return new NamespaceModes(client, await informers.create(NAMESPACE, options, "modes of namespaces"));
  }

  /**
   * The mode that holds for an object of a kind.
   *
   * @param configured what the operator is told of the kind
   * @throws ApiError when the API server cannot tell of a new namespace
   */
  async modeOf(kind: AnyKind, object: LiveObject, configured: Mode | undefined): Promise<SetMode> {
    const own = obeyedAnnotations(object).mode;
    if (kind.scope === "Cluster") return { mode: strictest([own, configured]) };
    const name = object.metadata.namespace ?? "";
    // An object may be seen before its namespace is.
    const namespace = this.namespaces.get(name) ?? (await this.#read(name));
    const { mode, problem }: ReturnType<typeof modeOfNamespace> = namespace ? modeOfNamespace(namespace) : {};
    return { mode: strictest([own, mode, configured]), ...(problem !== undefined && { problem }) };
  }

  async #read(name: string): Promise<LiveObject | undefined> {
    try {
      return await this.client.get(NAMESPACE, name);
    } catch (error) {
      if (isApiError(error, 404)) return undefined;
      throw error;
    }
  }
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

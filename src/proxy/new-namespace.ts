import { setTimeout as delay } from "node:timers/promises";
import { type ResourceAttributes, reviewAccess } from "../../providers/kubernetes/access-review";
import type { KubernetesClient, LiveObject } from "../../providers/kubernetes/client";
import type { Identity } from "../http/identity";
import { Refusal } from "../http/refusal";
import type { Owners } from "./owners";

/*
 * An owner's rights in a new namespace come some seconds after it, and tools do not wait: Helm, kubectl, Terraform and Argo CD make a
 * namespace and then its content. They also look for the content before there is the namespace, and take only a 404 or an empty list
 * for "not there".
 */

interface NewNamespaceOptions {
  client: Pick<KubernetesClient, "json">;
  owners: Pick<Owners, "ownedBy">;
  /** See {@link NamespaceView.label}. */
  label: string;
}

/** For so long after its creation, a namespace's owner may still be about to get rights in it. */
const NEW_MS = 60_000;
/** So long a request waits for them at most. */
const RIGHTS_TIMEOUT_MS = 20_000;
/** So much later than the first, an owner's other RoleBindings may come. */
const OTHER_RIGHTS_MS = 1_000;
const POLL_MS = 200;
/** A right of the role `admin`, which every owner gets. */
const OF_OWNERS = { verb: "create", version: "v1", resource: "configmaps" };

/** `/apis/apps/v1/namespaces/acme/deployments/web/scale`, without what paths of other forms have. */
const NAMESPACED =
  /^\/(?:api|apis\/([a-z0-9.-]+))\/([a-z0-9]+)\/namespaces\/([a-z0-9-]+)(?:\/([a-z0-9]+)(?:\/([^/%]+)(?:\/([a-z]+))?)?)?$/;
const VERBS: Readonly<Record<string, string>> = { POST: "create", PUT: "update", PATCH: "patch", DELETE: "delete" };

/** What a request does in a namespace; `undefined` for any other request. */
export function attributesIn(method: string, target: string): (ResourceAttributes & { namespace: string }) | undefined {
  const [path = "", query] = target.split("?");
  const parts = NAMESPACED.exec(path);
  if (parts === null) return undefined;
  const [, group = "", version = "", namespace = "", resource, name, subresource] = parts;
  const isOfAll = name === undefined && resource !== undefined;
  const isWatch = /(^|&)watch=(1|true)(&|$)/.test(query ?? "");
  const read = isOfAll ? (isWatch ? "watch" : "list") : "get";
  const isRead = method === "GET" || method === "HEAD";
  const verb = isRead ? read : isOfAll && method === "DELETE" ? "deletecollection" : VERBS[method];
  if (verb === undefined) return undefined;
  return {
    ...{ verb, group, version, namespace, resource: resource ?? "namespaces" },
    ...((name ?? (resource === undefined ? namespace : undefined)) && { name: name ?? namespace }),
    ...(subresource !== undefined && { subresource }),
  };
}

/** Namespaces that are absent or new, as members of the user group meet them. */
export class NewNamespaces {
  /** Who waits for the first rights, where: many requests are one question. */
  readonly #waiting = new Map<string, Promise<void>>();

  constructor(private readonly options: NewNamespaceOptions) {}

  /**
   * What becomes of a request that the API server has forbidden.
   *
   * @returns whether the user has the right by now, so that the same request is to be made again; or the empty list that the API
   *   server answers who may list in an absent namespace
   * @throws Refusal 404 where there is no such namespace
   */
  async becomesAllowed(
    identity: Identity,
    attributes: ResourceAttributes & { namespace: string },
  ): Promise<boolean | object> {
    const { client, owners, label } = this.options;
    const { namespace } = attributes;
    const query = new URLSearchParams({ fieldSelector: `metadata.name=${namespace}` });
    type Namespaces = { metadata: { resourceVersion: string }; items: LiveObject[] };
    const { items, metadata } = await client.json<Namespaces>("GET", `/api/v1/namespaces?${query}`);
    const [live] = items;
    if (live === undefined) {
      const creation = { verb: "create", version: "v1", resource: "namespaces" };
      if (!(await this.#mayDo(identity, creation))) return false;
      const kind = attributes.verb === "list" ? await this.#kindOf(attributes) : undefined;
      if (kind === undefined) throw new Refusal(404, "NotFound", `namespaces "${namespace}" not found`);
      const { group, version } = attributes;
      const apiVersion = group ? `${group}/${version}` : version;
      return { kind: `${kind}List`, apiVersion, metadata: { resourceVersion: metadata.resourceVersion }, items: [] };
    }
    const { creationTimestamp = "", deletionTimestamp, labels = {} } = live.metadata;
    const isOwn = owners.ownedBy(identity).includes(labels[label] ?? "");
    if (!isOwn || deletionTimestamp !== undefined || Date.now() - Date.parse(creationTimestamp) > NEW_MS) return false;
    await this.#firstRights(identity, namespace);
    for (let waitedMs = 0; waitedMs <= OTHER_RIGHTS_MS; waitedMs += POLL_MS) {
      if (await this.#mayDo(identity, attributes)) return true;
      await delay(POLL_MS);
    }
    return false;
  }

  /** The kind of what is listed, where the API server serves that. */
  async #kindOf({ group, version, resource }: ResourceAttributes): Promise<string | undefined> {
    const path = group ? `/apis/${group}/${version}` : `/api/${version}`;
    const { resources } = await this.options.client.json<{ resources: { name: string; kind: string }[] }>("GET", path);
    return resources.find(({ name }) => name === resource)?.kind;
  }

  /** Returns when the user has the role of an owner in a namespace, or has waited long enough. */
  #firstRights(identity: Identity, namespace: string): Promise<void> {
    const key = JSON.stringify([identity.username, identity.groups, namespace]);
    const waiting = this.#waiting.get(key) ?? this.#poll(identity, namespace).finally(() => this.#waiting.delete(key));
    this.#waiting.set(key, waiting);
    return waiting;
  }

  async #poll(identity: Identity, namespace: string): Promise<void> {
    const deadline = performance.now() + RIGHTS_TIMEOUT_MS;
    while (performance.now() < deadline) {
      if (await this.#mayDo(identity, { ...OF_OWNERS, namespace })) return;
      await delay(POLL_MS);
    }
  }

  #mayDo(identity: Identity, resourceAttributes: ResourceAttributes): Promise<boolean> {
    return reviewAccess(this.options.client, identity, { resourceAttributes });
  }
}

import { reviewAccess } from "../../providers/kubernetes/access-review";
import type { KubernetesClient } from "../../providers/kubernetes/client";
import type { Identity } from "../http/identity";
import { Refusal } from "../http/refusal";
import type { Owners } from "./owners";

export type Passage =
  /** As it came, under the user's own identity. */
  | { view: "user"; path: string }
  /** A list or watch of namespaces that was narrowed to the user's own, under the identity of the proxy. */
  | { view: "own-namespaces"; path: string; owned: readonly string[] };

export interface ViewOptions {
  owners: Pick<Owners, "ready" | "ownedBy" | "changedSince">;
  /** The label of a namespace that names the object that owns it. */
  label: string;
  client: Pick<KubernetesClient, "json">;
  /** Members of these see their own namespaces; everybody else sees what the API server lets them see. */
  userGroups: readonly string[];
}

const NAMESPACES = "/api/v1/namespaces";
/** The longest value of a label; an object with a longer name has no namespaces, and in a selector it is an error. */
const MAX_LABEL_LENGTH = 63;

/**
 * Decides how a request is passed on. Only one path is ever changed, and it is composed again: what does not look
 * exactly like a list of namespaces goes out under the user's own identity, whatever it is.
 */
export async function passageOf(
  options: ViewOptions,
  identity: Identity,
  method: string,
  target: string,
): Promise<Passage> {
  const asItCame: Passage = { view: "user", path: target };
  const { owners, label } = options;
  if (method !== "GET" || target.split("?")[0] !== NAMESPACES) return asItCame;
  if (!isNarrowed(options, identity)) return asItCame;

  if (!owners.ready) {
    throw new Refusal(503, "ServiceUnavailable", "the owners of namespaces are not known yet: try again later");
  }
  const parameters = parametersOf(target);
  const watches = isTrue(parameters.get("watch"));
  const owned = owners.ownedBy(identity);
  if (owned.length === 0 && (await mayList(options.client, identity, watches ? "watch" : "list"))) return asItCame;

  const from = parameters.get("resourceVersion");
  const beginsAnew = !from || from === "0" || isTrue(parameters.get("sendInitialEvents"));
  if (watches && !beginsAnew && owners.changedSince(identity, from)) throw expired();

  parameters.set("labelSelector", ownNamespaces(label, owned, parameters.get("labelSelector")));
  return { view: "own-namespaces", path: `${NAMESPACES}?${parameters}`, owned };
}

/** Whether a user's lists of namespaces are narrowed to the user's own. */
export function isNarrowed({ userGroups }: Pick<ViewOptions, "userGroups">, { groups }: Identity): boolean {
  return groups.some((group) => userGroups.includes(group));
}

/** Whether a request is a watch, of any resource. */
export function isWatch(target: string): boolean {
  return isTrue(parametersOf(target).get("watch"));
}

/** Tells clients that they must list again before they continue to watch. */
export function expired(): Refusal {
  return new Refusal(410, "Expired", "the namespaces that you own have changed: list them again");
}

function mayList(client: ViewOptions["client"], identity: Identity, verb: string): Promise<boolean> {
  const attributes = { resourceAttributes: { verb, version: "v1", resource: "namespaces" } };
  return reviewAccess(client, identity, attributes).catch(() => {
    throw new Refusal(503, "ServiceUnavailable", "your rights could not be reviewed: try again later");
  });
}

/** As the API server reads a parameter: anything but these is true, and so is a parameter without a value. */
function isTrue(value: string | null): boolean {
  return value !== null && value !== "0" && value.toLowerCase() !== "false";
}

function parametersOf(target: string): URLSearchParams {
  return new URLSearchParams(/\?.*/.exec(target)?.[0]);
}

/**
 * The label selector of those namespaces of `owned` objects that `requested`, the client's own selector, selects.
 *
 * Ours comes first: text after a complete requirement can only narrow the selection, or make the selector invalid.
 */
export function ownNamespaces(label: string, owned: readonly string[], requested: string | null): string {
  const values = owned.filter((name) => name.length <= MAX_LABEL_LENGTH);
  // No namespace can match `label,!label`: the API server has no other way to select nothing.
  const own = values.length === 0 ? `${label},!${label}` : `${label} in (${values.join(",")})`;
  return requested === null || requested.trim() === "" ? own : `${own},${requested}`;
}

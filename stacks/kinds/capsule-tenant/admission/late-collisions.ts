import { setTimeout as delay, setImmediate } from "node:timers/promises";
import type { LiveObject } from "../../../../providers/kubernetes/index";
import { type AdmissionView, objectKey } from "../../../contract/index";
import { COLLISIONS_ANNOTATION, formatCollisions, readCollisions } from "../collisions";
import { isOlder } from "../namespaces";
import { isToBeDeleted } from "../younger";
import { endpointsOf, textOf } from "./endpoints";
import { comparisonIn, type Rival, rivalsOf } from "./ingress-collisions";

const TYPE = { apiVersion: "networking.k8s.io/v1", kind: "Ingress" } as const;
const NAMESPACE = { apiVersion: "v1", kind: "Namespace" } as const;
/** After a write that failed, as another replica may have written. */
const RETRY_MS = 1_000;
const MAX_RETRIES = 5;
/** Told of one namespace. */
const MAX_TOLD = 20;

/**
 * Finds Ingresses that were admitted together although they collide: the cache of the webhook showed neither to the other.
 * The younger one is noted on its namespace, from where it comes into a condition of the tenant, and told of by an Event; it
 * is deleted where the installation says so. Each replica looks, and the one whose note is written first tells.
 */
export class LateCollisions {
  /** Keys of Ingresses to look at. */
  readonly #pending = new Map<string, number>();
  #working = false;

  /** An Ingress has come, changed or gone. */
  changed(ingress: LiveObject, view: AdmissionView): void {
    this.#add(objectKey(ingress.metadata), 0);
    // What was in its way may have no rival any more.
    for (const namespace of view.byIndex("namespaces", "collisions", "true")) {
      for (const name of Object.keys(collisionsOf(namespace))) this.#add(`${namespace.metadata.name}/${name}`, 0);
    }
    if (!this.#working) void this.#work(view);
  }

  #add(key: string, retries: number): void {
    this.#pending.set(key, retries);
  }

  async #work(view: AdmissionView): Promise<void> {
    this.#working = true;
    try {
      for (;;) {
        await setImmediate(); // between two Ingresses, the event loop does what else there is
        const [next] = this.#pending;
        if (next === undefined) return;
        const [key, retries] = next;
        this.#pending.delete(key);
        try {
          await this.#look(key, view);
        } catch {
          if (retries < MAX_RETRIES) void this.#again(key, retries + 1, view);
        }
      }
    } finally {
      this.#working = false;
    }
  }

  async #again(key: string, retries: number, view: AdmissionView): Promise<void> {
    await delay(RETRY_MS, undefined, { ref: false });
    this.#add(key, retries);
    if (!this.#working) void this.#work(view);
  }

  async #look(key: string, view: AdmissionView): Promise<void> {
    const ingress = view.get("ingresses", key);
    const [namespace = "", name = ""] = key.split("/");
    const { older, younger } = ingress === undefined ? {} : rivalsIn(ingress, view);
    await this.#note(namespace, name, ingress, older, view);
    // The event of the older one may come last.
    if (younger === undefined) return;
    await setImmediate();
    const { metadata } = younger.ingress;
    const itsOlder = rivalsIn(younger.ingress, view).older;
    await this.#note(metadata.namespace ?? "", metadata.name, younger.ingress, itsOlder, view);
  }

  /** @param older whose requests the Ingress takes; `undefined` when there is none any more */
  async #note(
    namespace: string,
    name: string,
    ingress: LiveObject | undefined,
    older: Rival | undefined,
    view: AdmissionView,
  ): Promise<void> {
    const home = view.get("namespaces", namespace);
    if (home === undefined || home.metadata.deletionTimestamp !== undefined) return;
    const noted = collisionsOf(home);
    const text = older && `${textOf(older.endpoint)} of ${objectKey(older.ingress.metadata)}`;
    const isDeleted = ingress !== undefined && older !== undefined && isToBeDeleted(ingress);
    if (!isDeleted && noted[name] === text) return;
    const { [name]: _, ...others } = noted;
    const isTold = text !== undefined && !isDeleted && Object.keys(others).length < MAX_TOLD;
    const annotation = formatCollisions(isTold ? { ...others, [name]: text } : others);
    const { resourceVersion, uid } = home.metadata;
    if (annotation !== home.metadata.annotations?.[COLLISIONS_ANNOTATION]) {
      await view.client.mergePatch(NAMESPACE, namespace, undefined, {
        metadata: { uid, resourceVersion, annotations: { [COLLISIONS_ANNOTATION]: annotation ?? null } },
      });
    }
    if (isDeleted) {
      const deleted = await view.client.delete(TYPE, name, namespace, { uid: ingress.metadata.uid });
      if (deleted === undefined) return; // another replica has told
    }
    if (ingress !== undefined && text !== undefined) {
      const end = isDeleted ? "it is deleted" : "change one of them";
      view.warn(ingress, "HostCollision", `it came together with another Ingress and takes ${text}: ${end}`);
    }
  }
}

/** Of the Ingresses with the same endpoint, within the scope of this one's tenant, the first that is older and that is younger. */
function rivalsIn(ingress: LiveObject, view: AdmissionView): { older?: Rival; younger?: Rival } {
  const comparison = comparisonIn(ingress.metadata.namespace ?? "", view);
  if (comparison === undefined) return {};
  const found: { older?: Rival; younger?: Rival } = {};
  for (const rival of rivalsOf([...endpointsOf(ingress).all.values()], ingress, comparison)) {
    if (rival === "too many") break;
    found[isOlder(rival.ingress, ingress) ? "older" : "younger"] ??= rival;
    if (found.older !== undefined && found.younger !== undefined) break;
  }
  return found;
}

function collisionsOf({ metadata }: LiveObject): Record<string, string> {
  return readCollisions(metadata.annotations?.[COLLISIONS_ANNOTATION]) ?? {};
}

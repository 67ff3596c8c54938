import { setTimeout as delay, setImmediate } from "node:timers/promises";
import type { LiveObject } from "../../../../providers/kubernetes/index";
import { type AdmissionView, objectKey } from "../../../contract/index";
import { COLLISIONS_ANNOTATION, collisionsOf } from "../collisions";
import { isOlder } from "../namespaces";
import { deletesYounger, isYoung } from "../younger";
import { endpointsOf, textOf } from "./endpoints";
import { comparisonIn, type Rival, rivalsOf } from "./ingress-collisions";
import { tenantNameOf } from "./tenants";

const TYPE = { apiVersion: "networking.k8s.io/v1", kind: "Ingress" } as const;
const NAMESPACE = { apiVersion: "v1", kind: "Namespace" } as const;
/** After a write that failed, as another replica may have written. */
const RETRY_MS = 1_000;
const MAX_FAILURES = 5;
/** After each look, the event loop is left alone for so many times as long: whatever changes, looks take a tenth of it. */
const REST = 9;
/** Told of one namespace. */
const MAX_TOLD = 20;

/**
 * Finds Ingresses that were admitted together although they collide: the cache of the webhook showed neither to the other.
 * The younger one is noted on its namespace, from where it comes into a condition of the tenant, and told of by an Event; it
 * is deleted where the installation says so. Each replica looks, and the one whose note is written first tells.
 */
export class LateCollisions {
  /** Ingresses to look at: names with how often that failed, by namespace. */
  readonly #pending = new Map<string, Map<string, number>>();
  /** The checked generation of each Ingress: an Ingress of the same generation takes the same requests. */
  readonly #generations = new Map<string, number>();
  #working = false;

  ingressChanged(ingress: LiveObject, view: AdmissionView): void {
    const key = objectKey(ingress.metadata);
    const { namespace = "", name, generation = 0 } = ingress.metadata;
    if (this.#generations.get(key) === generation) return;
    this.#generations.set(key, generation);
    this.#add(namespace, name);
    this.#addNoted(view);
  }

  ingressDeleted({ metadata }: LiveObject, view: AdmissionView): void {
    this.#generations.delete(objectKey(metadata));
    this.#addNoted(view);
  }

  /** What was in the way of these may be there no more. */
  #addNoted(view: AdmissionView): void {
    for (const home of view.byIndex("namespaces", "collisions", "true")) {
      for (const name of Object.keys(collisionsOf(home))) this.#add(home.metadata.name, name);
    }
    void this.#work(view);
  }

  #add(namespace: string, name: string, failures = 0): void {
    const names = this.#pending.get(namespace) ?? new Map();
    this.#pending.set(namespace, names.set(name, failures));
  }

  /** The next one; namespaces take turns. */
  #take(): { namespace: string; name: string; failures: number } | undefined {
    for (const [namespace, names] of this.#pending) {
      this.#pending.delete(namespace);
      for (const [name, failures] of names) {
        names.delete(name);
        if (names.size > 0) this.#pending.set(namespace, names);
        return { namespace, name, failures };
      }
    }
    return undefined;
  }

  async #work(view: AdmissionView): Promise<void> {
    if (this.#working) return;
    this.#working = true;
    for (let next = this.#take(); next !== undefined; next = this.#take()) {
      const { namespace, name, failures } = next;
      const start = performance.now();
      try {
        await this.#look(namespace, name, view);
      } catch {
        if (failures < MAX_FAILURES) {
          setTimeout(() => {
            this.#add(namespace, name, failures + 1);
            void this.#work(view);
          }, RETRY_MS).unref();
        }
      }
      await delay((performance.now() - start) * REST, undefined, { ref: false });
    }
    this.#working = false;
  }

  async #look(namespace: string, name: string, view: AdmissionView): Promise<void> {
    const ingress = view.get("ingresses", `${namespace}/${name}`);
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
    const text = older && `${textOf(older.endpoint)} of ${nameIn(namespace, older.ingress, view)}`;
    // An old one may have been changed to take what a new one takes.
    const isDeleted =
      deletesYounger() && ingress !== undefined && older !== undefined && [ingress, older.ingress].every(isYoung);
    if (!isDeleted && noted[name] === text) return;
    const { [name]: _, ...others } = noted;
    const isTold = text !== undefined && !isDeleted && Object.keys(others).length < MAX_TOLD;
    const told = isTold ? { ...others, [name]: text } : others;
    const annotation = Object.keys(told).length === 0 ? null : JSON.stringify(told);
    const { resourceVersion, uid } = home.metadata;
    if (annotation !== (home.metadata.annotations?.[COLLISIONS_ANNOTATION] ?? null)) {
      await view.client.mergePatch(NAMESPACE, namespace, undefined, {
        metadata: { uid, resourceVersion, annotations: { [COLLISIONS_ANNOTATION]: annotation } },
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

/** An Ingress as it is called in a namespace: owners do not learn what other tenants have. */
function nameIn(namespace: string, { metadata }: LiveObject, view: AdmissionView): string {
  const isOwn = tenantNameOf(metadata.namespace ?? "", view) === tenantNameOf(namespace, view);
  return isOwn ? objectKey(metadata) : "another tenant";
}

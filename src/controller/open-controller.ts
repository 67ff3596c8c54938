import type { LiveObject } from "../../providers/kubernetes/client";
import { CodeEndedError } from "../../stacks/contract/code-ended";
import { programDigest } from "../../stacks/contract/digest";
import { type AnyKind, kindName, kindType } from "../../stacks/contract/kind";
import { objectId, objectKey } from "../../stacks/contract/object";
import { referencesOf } from "../../stacks/contract/references";
import { type ObjectChange, statesOf, withoutManagedFields } from "../cache/change";
import { ProvenFreshness } from "../cache/freshness";
import type { Informer } from "../cache/informer";
import { unservedTypes } from "../cache/informer-factory";
import { Controller, type ControllerEnvironment } from "./controller";
import type { KindCache } from "./kind-cache";
import { objectItem } from "./object-item";
import { ObjectWriter } from "./object-writer";
import { BURST_DELAY_MS, viewIn } from "./owner-index";
import { Reconciler } from "./reconcile";
import { Rollout, type RolloutPolicy } from "./rollout";
import { countRuns } from "./run-metrics";
import { textSharing } from "./shared-texts";

const KEY_INDEX = "key";
/** What the API server answers while an extension of it is away: only objects that need it wait. */
const UNAVAILABLE = 503;
const REFERENCE_INDEX = "reference";

/** Of what is only referred to, the version tells of changes; its value is read when it is used. */
function withoutContents({ apiVersion, kind, metadata }: LiveObject): LiveObject {
  const { name, namespace, uid, resourceVersion } = metadata;
  return { apiVersion, kind, metadata: { name, uid, resourceVersion, ...(namespace !== undefined && { namespace }) } };
}

/**
 * Makes the controller of a kind, with informers for the kind's objects, for what they own and for what has to do with them.
 *
 * Types that it owns and the API server does not serve stop only objects that need them.
 *
 * @throws ApiError, with nothing made, when the kind, or a type that it watches, is not installed in the cluster
 */
export async function openController(kind: AnyKind, environment: ControllerEnvironment): Promise<Controller> {
  const { client, informers, logger, metrics, owners, queue, recorder } = environment;
  const name = kindName(kind);
  const own = kindType(kind);
  for (const { apiVersion, kind: type } of [own, ...(kind.capabilities.watches ?? [])]) {
    await client.resourceType(apiVersion, type);
  }
  const reads = Object.values(kind.capabilities.reads ?? {});
  const unserved = await unservedTypes(client, [...kind.owns, ...reads], UNAVAILABLE);
  for (const { apiVersion, kind: type } of unserved) {
    logger.error({ kind: name, apiVersion, type }, "the API server does not serve a type that the kind owns or reads");
  }
  const owned: Informer[] = [];
  for (const type of kind.owns) if (!unserved.includes(type)) owned.push(await owners.watch(type));
  const watches = (kind.capabilities.watches ?? []).map(async ({ labelSelector, keysOf, ...type }) => {
    const failed = failing("keysOf of a watch failed", (object) => informer.refresh(object));
    const keys = new Derived({ derive: async (object) => keysOf(object), failed });
    const onChange = (change: ObjectChange) => {
      const states = statesOf(change);
      const all = states.some(keys.isUnknown) ? objects.list().map(({ metadata }) => objectKey(metadata)) : [];
      for (const key of new Set([...states.flatMap(keys.of), ...all])) requeue(key, BURST_DELAY_MS);
    };
    const indexers = { [KEY_INDEX]: keys.of };
    const options = { labelSelector, indexers, prepare: keys.prepare, transform: withoutManagedFields, onChange };
    const watchName = `${type.apiVersion}/${type.kind}?${labelSelector}`;
    const informer: Informer = await informers.create(type, options, watchName);
    return informer;
  });
  const watched = await Promise.all(watches);
  const referenced = new Map<string, Informer>();
  for (const type of reads) {
    const id = `${type.apiVersion}/${type.kind}`;
    if (unserved.includes(type) || referenced.has(id)) continue;
    const onChange = ({ object }: ObjectChange) => {
      const ids = Derived.mayHave(objectId({ ...type, metadata: object.metadata }));
      for (const { metadata } of ids.flatMap((id) => objects.byIndex(REFERENCE_INDEX, id))) {
        requeue(objectKey(metadata), BURST_DELAY_MS);
      }
    };
    const options = { metadataOnly: true, transform: withoutContents, onChange };
    referenced.set(id, await informers.create(type, options, `${id} read by ${name}`));
  }
  const targets = new Derived({
    derive: async (object) => (await referencesOf(kind, object)).map(([, target]) => objectId(target)),
    failed: failing("name of a reference failed", (object) => objects.refresh(object)),
  });
  const onChange = (change: ObjectChange) => controller.objectChanged(change);
  const onRestore = () => controller.restored();
  const shared = textSharing();
  const ownOptions = {
    ...(reads.length > 0 && { prepare: targets.prepare }),
    indexers: { [REFERENCE_INDEX]: targets.of },
    transform: (object: LiveObject) => shared(withoutManagedFields(object)),
    onChange,
    onRestore,
  };
  const objects: Informer = await informers.create(own, ownOptions, name);
  const cache: KindCache = {
    object: (key) => objects.get(key),
    tombstone: (key) => controller.tombstone(key),
    owned: (uid, recorded) => owners.owned(kind, uid, recorded),
    watched: (key) =>
      watched.flatMap((informer) => Derived.mayHave(key).flatMap((value) => informer.byIndex(KEY_INDEX, value))),
    view: (id) => owners.view(id),
    unserved: (id) => owners.unserved(id),
    referenced: (id) => viewIn(referenced, id),
    describeOwner: (uid) => owners.describe(uid),
  };
  const freshness = new ProvenFreshness(objects);
  const counts = countRuns(kind, metrics);
  const reconciler = new Reconciler({
    ...environment,
    kind,
    programDigest: programDigest(kind),
    cache,
    writer: new ObjectWriter({ kind, client, cache, freshness, recorder, metrics: counts }),
    readSettings: (object) => environment.readSettings(kind, object),
    rollout: environment.rollout && openRollout(environment.rollout),
    metrics: counts,
  });
  const others = { own: [...watched, ...referenced.values()], owned };
  const controller = new Controller(kind, environment, objects, others, freshness, reconciler, unserved);
  return controller;

  /** Tells of what could not be derived of an object, and derives it again when the kind's code may be called again. */
  function failing(message: string, again: (object: LiveObject) => Promise<void>): DerivedOptions["failed"] {
    return (object, error) => {
      logger.error({ err: error, kind: name, type: object.kind, object: objectKey(object.metadata) }, message);
      if (!(error instanceof CodeEndedError)) return;
      const ms = Math.max(1, error.notBefore - performance.now());
      setTimeout(() => void again(object), ms).unref();
    };
  }

  function requeue(key: string, ms: number): void {
    const object = objects.get(key);
    if (object !== undefined) queue.addAfter(objectItem(kind, object.metadata), ms);
  }

  function openRollout(policy: RolloutPolicy): Rollout {
    const rollout = new Rollout({ ...policy, total: () => objects.size, requeue: (key) => requeue(key, 0) });
    metrics.rollout(name, () => rollout.counts);
    return rollout;
  }
}

/** The value of what could not be derived: such an object counts for each value. */
const UNKNOWN = "unknown";

/** What is derived from an object in a cache. */
interface DerivedOptions {
  derive(object: LiveObject): Promise<string[]>;
  /** Told of an object whose values are unknown. */
  failed(object: LiveObject, error: unknown): void;
}

/** What the code of a kind derives from objects of a cache: asked for before the cache has them, as indexers wait for nothing. */
export class Derived {
  readonly #values = new WeakMap<LiveObject, string[]>();

  constructor(private readonly options: DerivedOptions) {}

  readonly prepare = async (objects: readonly LiveObject[]): Promise<void> => {
    await Promise.all(
      objects.map(async (object) => {
        try {
          this.#values.set(object, await this.options.derive(object));
        } catch (error) {
          this.#values.set(object, [UNKNOWN]);
          this.options.failed(object, error);
        }
      }),
    );
  };

  readonly of = (object: LiveObject): string[] => this.#values.get(object) ?? [];

  /** Under which values of an index an object is that has this value, or may have it. */
  static readonly mayHave = (value: string): string[] => [value, UNKNOWN];

  readonly isUnknown = (object: LiveObject): boolean => this.of(object).includes(UNKNOWN);
}

import type { KeyObject } from "node:crypto";
import timers from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { Logger } from "pino";
import { errorMessageOf } from "../../providers/errors";
import { isApiError, type KubernetesClient, type LiveObject, type ObjectType } from "../../providers/kubernetes/client";
import { MESSAGES } from "../../providers/kubernetes/messages";
import { APPROVAL_TYPE, type Approval, expiryOf } from "../../stacks/contract/approval";
import type { AnyKind } from "../../stacks/contract/kind";
import { objectKey } from "../../stacks/contract/object";
import { PLAN_TYPE, type Plan, type PlanSpec, type PlanStatus, planName } from "../../stacks/contract/plan";
import { compareResourceVersions, withoutManagedFields } from "../cache/change";
import type { Informer } from "../cache/informer";
import type { InformerFactory } from "../cache/informer-factory";
import { unservedTypes } from "../cache/informer-factory";
import { type PlanBasis, type PlanDigests, planDigests } from "../plan/digest";
import { asDecision, digestsOf, isOf, type PlanDecision } from "./plan-decision";

/** The plans and approvals of a cluster, for all controllers. */
export type Plans = Pick<PlanStore, "decisionOn" | "get" | "write" | "remove" | "digests" | "authorMayNotApprove">;

type Names = Pick<LiveObject, "metadata">;

/** Who writes a plan of an object, and the object's kind. */
interface Writing {
  client: Pick<KubernetesClient, "apply" | "delete">;
  kind: AnyKind;
}

export interface PlanStoreOptions {
  client: Pick<KubernetesClient, "delete" | "resourceType">;
  /** See {@link planKey}. */
  planKey: () => Promise<KeyObject>;
  informers: InformerFactory;
  /** The operator's, for the plans of what has none or is in one that ends. */
  namespace: string;
  /** Whether those who have made a change may not approve it. */
  authorMayNotApprove?: boolean | undefined;
  /** Told of an object whose plan is gone, or decided on. */
  onChange: (object: PlanSpec["object"], isDecided: boolean) => void;
  logger: Logger;
}

const SWEEP_INTERVAL_MS = 10 * 60_000;
const DIGEST_INDEX = "digest";

/** Plans as this operator writes them, and what people decided about them. */
export class PlanStore {
  /** By key, until the cache shows them. */
  readonly #written = new Map<string, LiveObject>();
  /** The UIDs of plans that were removed, until the cache shows it. */
  readonly #removed = new Set<string>();

  private constructor(
    private readonly options: PlanStoreOptions,
    private readonly plans: Informer,
    private readonly approvals: Informer,
  ) {}

  /** @returns `undefined` where the API server does not serve plans and approvals */
  static async open(options: PlanStoreOptions): Promise<PlanStore | undefined> {
    const { client, informers } = options;
    if ((await unservedTypes(client, [PLAN_TYPE, APPROVAL_TYPE])).length > 0) return undefined;
    const plans: Informer = await informers.create(PLAN_TYPE, {
      indexers: { [DIGEST_INDEX]: ({ spec }) => [(spec as PlanSpec).digest] },
      transform: withoutManagedFields,
      onRestore: () => store.#forget(),
      onChange: (change) => {
        if (change.type === "deleted") store.#removed.delete(change.previous.metadata.uid);
        store.#shown(change.object);
        store.#planChanged(change.object as Plan, change.type === "deleted");
      },
    });
    const approvals = await informers.create(APPROVAL_TYPE, {
      indexers: { [DIGEST_INDEX]: ({ spec }) => [...digestsOf(spec as Approval["spec"])] },
      transform: withoutManagedFields,
      onChange: ({ object }) => store.#decided(object as Approval),
    });
    const store: PlanStore = new PlanStore(options, plans, approvals);
    return store;
  }

  get authorMayNotApprove(): boolean {
    return this.options.authorMayNotApprove ?? false;
  }

  /** The digests that approvals of a plan name. */
  async digests(basis: PlanBasis): Promise<PlanDigests> {
    return planDigests(await this.options.planKey(), basis);
  }

  /** All plans, as the cache shows them. */
  list(): Plan[] {
    return this.plans.list() as Plan[];
  }

  /** The plan of an object, if there is one. */
  get(kind: AnyKind, object: Names): Plan | undefined {
    for (const namespace of this.#namespacesOf(object)) {
      const plan = this.#current(objectKey({ namespace, name: planName(kind, object.metadata) }));
      if (plan !== undefined) return plan as Plan;
    }
    return undefined;
  }

  /**
   * The latest valid decision on an object's plan of this digest. Of two decisions within one second, the rejection counts. An ignored
   * approval is returned only where there is no other decision.
   */
  decisionOn(kind: AnyKind, object: Names, digest: string, authors?: readonly string[]): PlanDecision | undefined {
    const namespace = this.get(kind, object)?.metadata.namespace ?? object.metadata.namespace ?? this.options.namespace;
    const now = Date.now();
    const decisions = (this.approvals.byIndex(DIGEST_INDEX, digest) as Approval[])
      .filter((approval) => approval.metadata.namespace === namespace && isOf(approval, kind, object))
      .filter((approval) => expiryOf(approval) > now)
      .map((approval) => asDecision(approval, digest, authors))
      .sort((a, b) => b.at.localeCompare(a.at) || b.decision.localeCompare(a.decision));
    return decisions.find(({ decision }) => decision !== "Ignored") ?? decisions[0];
  }

  /**
   * Makes an object's plan, or replaces it. One of the same digest keeps its cause, and so the time since which it waits; its authors
   * may be others.
   *
   * @param options the plan of a tombstone is in the operator's namespace and has no owner reference: the garbage collector would
   *   remove the plan
   * @throws ApiError when the API server refuses it
   */
  async write(
    { client, kind }: Writing,
    object: LiveObject,
    { cause, ...spec }: PlanSpec,
    status: PlanStatus,
    { isTombstone }: { isTombstone: boolean },
  ): Promise<void> {
    const current = this.get(kind, object);
    const { reason, at } = current?.spec.digest === spec.digest ? current.spec.cause : cause;
    const contents = { spec: { ...spec, cause: { ...cause, reason, at } }, status };
    if (current !== undefined && isDeepStrictEqual({ spec: current.spec, status: current.status }, contents)) return;
    const [own = "", operators = own] = this.#namespacesOf(object);
    const name = planName(kind, object.metadata);
    const isOwned = (namespace: string) => !isTombstone && [namespace, undefined].includes(object.metadata.namespace);
    const write = async (namespace: string) => {
      const metadata = { name, namespace, ...(isOwned(namespace) && { ownerReferences: [ownerReference(object)] }) };
      const { object: written } = await client.apply({ ...PLAN_TYPE, metadata, ...contents });
      const isShown = compareResourceVersions(written.metadata.resourceVersion, this.plans.resourceVersion) <= 0;
      if (!isShown) this.#written.set(objectKey(written.metadata), withoutManagedFields(written));
    };
    try {
      await write(isTombstone ? operators : (current?.metadata.namespace ?? own));
    } catch (error) {
      // Its namespace ends: nothing can be created there.
      if (!isApiError(error, 403) || !MESSAGES.terminating.test(error.message)) throw error;
      await write(operators);
    }
  }

  /** Removes the plan of an object, if there is one. @throws ApiError when the API server refuses it */
  async remove({ client, kind }: Writing, object: Names): Promise<void> {
    const plan = this.get(kind, object);
    if (plan === undefined) return;
    await this.#delete(client, PLAN_TYPE, plan);
    const [key, { uid }] = [objectKey(plan.metadata), plan.metadata];
    this.#written.delete(key);
    if (this.plans.get(key)?.metadata.uid === uid) this.#removed.add(uid);
  }

  /** Removes approvals that have expired, until `signal` is aborted. */
  async sweep(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      for (const approval of this.approvals.list() as Approval[]) {
        if (expiryOf(approval) > Date.now() || signal.aborted) continue;
        await this.#delete(this.options.client, APPROVAL_TYPE, approval).catch((error) => {
          const fields = { err: error, reason: errorMessageOf(error), approval: objectKey(approval.metadata) };
          this.options.logger.warn(fields, "could not remove an expired approval");
        });
      }
      await timers.setTimeout(SWEEP_INTERVAL_MS, undefined, { signal }).catch(() => {});
    }
  }

  async #delete(
    client: Pick<KubernetesClient, "delete">,
    type: ObjectType,
    { metadata: { name, namespace, uid } }: Names,
  ): Promise<void> {
    await client.delete(type, name, namespace, { uid }).catch((error) => {
      if (!isApiError(error, 409)) throw error; // another one by now
    });
  }

  /** What was written or removed is of another time. */
  #forget(): void {
    this.#written.clear();
    this.#removed.clear();
  }

  /** Drops what was written, once the cache has caught up with it. */
  #shown({ metadata }: LiveObject): void {
    const written = this.#written.get(objectKey(metadata));
    if (written && compareResourceVersions(written.metadata.resourceVersion, metadata.resourceVersion) <= 0)
      this.#written.delete(objectKey(metadata));
  }

  #planChanged(plan: Plan, isGone: boolean): void {
    // A decision may have come before the cache showed the plan; a plan that others delete is made again.
    const isDecided = !isGone && this.approvals.byIndex(DIGEST_INDEX, plan.spec.digest).length > 0;
    if (isGone || isDecided) this.options.onChange(plan.spec.object, isDecided);
  }

  #decided(approval: Approval): void {
    const plans = digestsOf(approval.spec).flatMap((digest) => this.plans.byIndex(DIGEST_INDEX, digest) as Plan[]);
    for (const plan of plans) {
      if (plan.metadata.namespace === approval.metadata.namespace) this.options.onChange(plan.spec.object, true);
    }
  }

  /** Where the plan of an object may be. */
  #namespacesOf({ metadata: { namespace } }: Names): string[] {
    return [...new Set([namespace ?? this.options.namespace, this.options.namespace])];
  }

  #current(key: string): LiveObject | undefined {
    const written = this.#written.get(key);
    const isNewer =
      written && compareResourceVersions(written.metadata.resourceVersion, this.plans.resourceVersion) > 0;
    if (isNewer) return written;
    const cached = this.plans.get(key);
    return cached && !this.#removed.has(cached.metadata.uid) ? cached : undefined;
  }
}

/** Not a controller's: the garbage collector alone is to see it. */
function ownerReference({ apiVersion, kind, metadata: { name, uid } }: LiveObject) {
  return { apiVersion, kind, name, uid };
}

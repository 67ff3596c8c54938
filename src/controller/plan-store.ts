import type { KeyObject } from "node:crypto";
import timers from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { Logger } from "pino";
import { errorMessageOf } from "../../providers/errors";
import { ApiError, isApiError, type KubernetesClient, type LiveObject } from "../../providers/kubernetes/client";
import { APPROVAL_TYPE, type Approval, type DecisionOnPlan, expiryOf } from "../../stacks/contract/approval";
import { mayApprove } from "../../stacks/contract/author-policy";
import { type AnyKind, kindName } from "../../stacks/contract/kind";
import { objectKey } from "../../stacks/contract/object";
import { PLAN_TYPE, type Plan, type PlanSpec, type PlanStatus, planName } from "../../stacks/contract/plan";
import { compareResourceVersions, type Informer, statesOf, withoutManagedFields } from "../cache/informer";
import type { InformerFactory } from "../cache/informer-factory";
import { type PlanBasis, type PlanDigests, planDigests } from "../preview/plan-digest";

/** What an approval or a rejection that holds says. */
export interface PlanDecision {
  /** Ignored: an approval by an author of the change. */
  decision: DecisionOnPlan | "Ignored";
  approver: string;
  reason?: string;
  /** When it was made. */
  at: string;
  /** The digest that it names: a plan's, or a group's. */
  digest: string;
  /** In ms since 1970. */
  expiresAt: number;
}

/** What tells one decision from the next, and from none. */
export function describeDecision(decision: PlanDecision | undefined): string | undefined {
  return decision && [decision.at, decision.decision, decision.approver].join(" ");
}

/** The plans and approvals of a cluster, for all controllers. */
export type Plans = Pick<PlanStore, "find" | "get" | "write" | "remove" | "digests" | "authorMayNotApprove">;

type Names = Pick<LiveObject, "metadata">;

export interface PlanStoreOptions {
  client: Pick<KubernetesClient, "apply" | "delete">;
  /** See {@link planKey}. */
  planKey: () => Promise<KeyObject>;
  informers: InformerFactory;
  /** The operator's, for the plans of what has none or is in one that ends. */
  namespace: string;
  /** Whether those who have made a change may not approve it. */
  authorMayNotApprove?: boolean | undefined;
  /** Told of an object whose plan, or a decision on it, is another now. */
  onChange: (object: PlanSpec["object"]) => void;
  logger: Logger;
}

const SWEEP_INTERVAL_MS = 10 * 60_000;
const DIGEST_INDEX = "digest";

/** Plans as this operator writes them, and what people decided about them. */
export class PlanStore {
  readonly #options: PlanStoreOptions;
  readonly #plans: Informer;
  readonly #approvals: Informer;
  /** By key, until the cache shows them. */
  readonly #written = new Map<string, LiveObject>();
  /** The UIDs of plans that were removed, until the cache shows it. */
  readonly #removed = new Set<string>();

  private constructor(options: PlanStoreOptions, plans: Informer, approvals: Informer) {
    this.#options = options;
    this.#plans = plans;
    this.#approvals = approvals;
  }

  /** @returns `undefined` where the API server does not serve plans and approvals */
  static async open(options: PlanStoreOptions): Promise<PlanStore | undefined> {
    const { informers } = options;
    try {
      const plans: Informer = await informers.create(PLAN_TYPE, {
        indexers: { [DIGEST_INDEX]: (plan) => digestsOf(plan as Plan) },
        transform: withoutManagedFields,
        onChange: (change) => {
          if (change.type === "deleted") store.#removed.delete(change.previous.metadata.uid);
          for (const plan of statesOf(change).slice(-1)) store.#planChanged(plan as Plan, change.type === "deleted");
        },
      });
      const approvals = await informers.create(APPROVAL_TYPE, {
        indexers: { [DIGEST_INDEX]: ({ spec }) => [digestOf(spec as Approval["spec"])] },
        transform: withoutManagedFields,
        onChange: ({ object }) => store.#decided(object as Approval),
      });
      const store: PlanStore = new PlanStore(options, plans, approvals);
      return store;
    } catch (error) {
      if (isApiError(error, 404)) return undefined;
      throw error;
    }
  }

  get authorMayNotApprove(): boolean {
    return this.#options.authorMayNotApprove ?? false;
  }

  /** The digests that approvals of a plan name. */
  async digests(basis: PlanBasis): Promise<PlanDigests> {
    return planDigests(await this.#options.planKey(), basis);
  }

  /** All plans, as the cache shows them. */
  list(): Plan[] {
    return this.#plans.list() as Plan[];
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
   * The latest decision that holds for an object and one of these digests; a rejection where two are of the same second. One that is
   * ignored is told where there is no other.
   *
   * @param authors whose approvals are ignored; see {@link authorsOf}
   */
  find(
    kind: AnyKind,
    object: Names,
    digests: readonly string[],
    authors?: readonly string[],
  ): PlanDecision | undefined {
    const namespace =
      this.get(kind, object)?.metadata.namespace ?? object.metadata.namespace ?? this.#options.namespace;
    const now = Date.now();
    const decisions = digests
      .flatMap((digest) => this.#approvals.byIndex(DIGEST_INDEX, digest) as Approval[])
      .filter((approval) => approval.metadata.namespace === namespace && isOf(approval, kind, object))
      .filter((approval) => expiryOf(approval) > now)
      .map((approval) => asDecision(approval, authors))
      .sort((a, b) => b.at.localeCompare(a.at) || b.decision.localeCompare(a.decision));
    return decisions.find(({ decision }) => decision !== "Ignored") ?? decisions[0];
  }

  /**
   * Makes an object's plan, or replaces it. One of the same digest keeps its cause, and so the time since which it waits; its authors
   * may be others.
   *
   * @param options of an object that is gone, the garbage collector would remove the plan
   * @throws ApiError when the API server refuses it
   */
  async write(
    kind: AnyKind,
    object: LiveObject,
    { cause, ...spec }: PlanSpec,
    status: PlanStatus,
    { gone = false } = {},
  ): Promise<void> {
    const current = this.get(kind, object);
    const { reason, at } = current?.spec.digest === spec.digest ? current.spec.cause : cause;
    const contents = { spec: { ...spec, cause: { ...cause, reason, at } }, status };
    if (current !== undefined && isDeepStrictEqual({ spec: current.spec, status: current.status }, contents)) return;
    const [own = "", operators = own] = this.#namespacesOf(object);
    const name = planName(kind, object.metadata);
    const isOwned = (namespace: string) => !gone && [namespace, undefined].includes(object.metadata.namespace);
    const manifest = (namespace: string) => ({
      ...PLAN_TYPE,
      metadata: {
        name,
        namespace,
        ...(isOwned(namespace) && { ownerReferences: [ownerReference(object)] }),
      },
      ...contents,
    });
    const write = async (namespace: string) => {
      const { object: written } = await this.#options.client.apply(manifest(namespace));
      this.#written.set(objectKey(written.metadata), withoutManagedFields(written));
    };
    try {
      await write(gone ? operators : (current?.metadata.namespace ?? own));
    } catch (error) {
      if (!isEnding(error)) throw error;
      await write(operators);
    }
  }

  /** Removes the plan of an object, if there is one. @throws ApiError when the API server refuses it */
  async remove(kind: AnyKind, object: Names): Promise<void> {
    const plan = this.get(kind, object);
    if (plan === undefined) return;
    const { name, namespace, uid } = plan.metadata;
    await this.#options.client.delete(PLAN_TYPE, name, namespace, { uid }).catch((error) => {
      if (!isApiError(error, 409)) throw error; // another one by now
    });
    this.#written.delete(objectKey(plan.metadata));
    if (this.#plans.get(objectKey(plan.metadata))?.metadata.uid === uid) this.#removed.add(uid);
  }

  /** Removes approvals that have expired, until `signal` is aborted. */
  async sweep(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      for (const approval of this.#approvals.list() as Approval[]) {
        if (expiryOf(approval) > Date.now() || signal.aborted) continue;
        const { name, namespace, uid } = approval.metadata;
        await this.#options.client.delete(APPROVAL_TYPE, name, namespace, { uid }).catch((error) => {
          const fields = { err: error, reason: errorMessageOf(error), approval: objectKey(approval.metadata) };
          if (!isApiError(error, 409)) this.#options.logger.warn(fields, "could not remove an expired approval");
        });
      }
      await timers.setTimeout(SWEEP_INTERVAL_MS, undefined, { signal }).catch(() => {});
    }
  }

  #planChanged(plan: Plan, isGone: boolean): void {
    // A decision may have come before the cache showed the plan; a plan that others delete is made again.
    const isDecided = digestsOf(plan).some((digest) => this.#approvals.byIndex(DIGEST_INDEX, digest).length > 0);
    if (isGone || isDecided) this.#options.onChange(plan.spec.object);
  }

  #decided(approval: Approval): void {
    for (const plan of this.#plans.byIndex(DIGEST_INDEX, digestOf(approval.spec)) as Plan[]) {
      if (plan.metadata.namespace === approval.metadata.namespace) this.#options.onChange(plan.spec.object);
    }
  }

  /** Where the plan of an object may be. */
  #namespacesOf({ metadata: { namespace } }: Names): string[] {
    return [...new Set([namespace ?? this.#options.namespace, this.#options.namespace])];
  }

  #current(key: string): LiveObject | undefined {
    const written = this.#written.get(key);
    if (written !== undefined) {
      if (compareResourceVersions(written.metadata.resourceVersion, this.#plans.resourceVersion) > 0) return written;
      this.#written.delete(key);
    }
    const cached = this.#plans.get(key);
    return cached && !this.#removed.has(cached.metadata.uid) ? cached : undefined;
  }
}

function digestsOf({ spec }: Plan): string[] {
  return [spec.digest, spec.group];
}

function digestOf({ digest, group }: Approval["spec"]): string {
  return digest ?? group ?? "";
}

/** Whether an approval is of this object, or of a group. */
function isOf({ spec, metadata }: Approval, kind: AnyKind, object: Names): boolean {
  if (spec.object === undefined) return true;
  const { kind: name, namespace, name: objectName } = spec.object;
  const isIn =
    object.metadata.namespace === undefined || (namespace ?? metadata.namespace) === object.metadata.namespace;
  return isIn && name === kindName(kind) && objectName === object.metadata.name;
}

function asDecision(approval: Approval, authors: readonly string[] | undefined): PlanDecision {
  const { decision, approver, reason } = approval.spec;
  return {
    decision: decision === "Approve" && !mayApprove(authors, approver) ? "Ignored" : decision,
    approver,
    ...(reason !== undefined && { reason }),
    at: approval.metadata.creationTimestamp ?? "",
    digest: digestOf(approval.spec),
    expiresAt: expiryOf(approval),
  };
}

/** Not a controller's: the garbage collector alone is to see it. */
function ownerReference({ apiVersion, kind, metadata: { name, uid } }: LiveObject) {
  return { apiVersion, kind, name, uid };
}

/** Whether a creation was refused because its namespace ends. */
function isEnding(error: unknown): boolean {
  return error instanceof ApiError && error.status === 403 && error.message.includes("because it is being terminated");
}

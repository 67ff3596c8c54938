import { randomUUID } from "node:crypto";
import timers from "node:timers/promises";
import type { Logger } from "pino";
import { errorMessageOf, type Failure, failureOf, RetryableError } from "../../providers/errors";
import type { Cluster } from "../../providers/kubernetes/cluster";
import { isClusterUid } from "../../providers/kubernetes/ownership";
import type { StackEngine } from "../automation/engine";
import type { BackendOwner } from "../automation/owner-file";
import { recordedOwner } from "../automation/stack-state";
import { OBJECT_STACK } from "./orphaned-stacks";
import { describeOwner, howToClaim, isOwner, type OperatorIdentity } from "./owner";
import type { StackHolder } from "./stack-holders";

export interface BackendOwnershipOptions {
  engine: Pick<StackEngine, "backendOwner" | "claimBackend" | "listStacks" | "exportStack">;
  /** The operator's. */
  namespace: string;
  /** @returns undefined where that may not be read */
  cluster(): Promise<Cluster | undefined>;
  /** All objects of all kinds. @throws Error where they cannot all be listed */
  holders(): Promise<StackHolder[]>;
  logger: Pick<Logger, "info" | "warn" | "error">;
}

export const BACKEND_REASONS = ["BackendForeign", "BackendUnknown"] as const;
type BackendReason = (typeof BACKEND_REASONS)[number];

/** {@link Failure} for all objects alike. */
export interface Refusal extends Failure {
  reason: BackendReason;
}

/** Told of what changes while the operator runs. */
interface BackendChanges {
  /** The refusal is another one. */
  refusal(): void;
  /** The operator uses a backend with another record: another one was put in place of the former, or this one was claimed again. */
  replaced(): void;
}

/** All objects wait for the same thing. */
const DEPENDENCY = "the state's backend";
const INTERVAL_MS = 10_000;
/** How many states are read, at most, to find one of an object of this cluster. */
const SAMPLE = 100;
const NOTHING_HAPPENS = "Nothing is updated or deleted until then";

/**
 * Whether the state's backend is this operator's. Its record is written once, by the operator that uses the backend first;
 * each operation names the record that it relies on. What cannot be seen is not taken for a new backend.
 */
export class BackendOwnership {
  #cluster: Cluster | undefined;
  #owner: BackendOwner | undefined;
  #refusal: Refusal | undefined;
  #examination: Promise<void> | undefined;
  #changes: BackendChanges = { refusal() {}, replaced() {} };

  constructor(private readonly options: BackendOwnershipOptions) {}

  /** Why nothing is updated or deleted; `undefined` also before the first examination. */
  get refusal(): Refusal | undefined {
    return this.#refusal;
  }

  /** Examines the backend now, and again as long as it is not this operator's, until `signal` is aborted. */
  async run(signal: AbortSignal, changes: BackendChanges): Promise<void> {
    this.#changes = changes;
    while (!signal.aborted) {
      if (this.#owner === undefined || this.#refusal !== undefined) {
        await this.examine().catch((error) => {
          this.options.logger.warn({ reason: errorMessageOf(error) }, "cannot read whose the state's backend is");
        });
      }
      await timers.setTimeout(INTERVAL_MS, undefined, { signal }).catch(() => {});
    }
  }

  /** The owner that operations name. @throws RetryableError `BackendForeign`, `BackendUnknown`, and what engines throw */
  async id(): Promise<string> {
    if (this.#owner === undefined && this.#refusal === undefined) await this.examine();
    if (this.#refusal === undefined && this.#owner !== undefined) return this.#owner.id;
    const { reason, message } = this.#refusal ?? unknown("nothing is known of it");
    throw new RetryableError(reason, message, { dependency: DEPENDENCY });
  }

  /** Why nothing can be updated or deleted now: it is not asked of a backend that is this operator's as far as is known. */
  problem(): Promise<Failure | undefined> {
    return this.id().then(() => undefined, failureOf);
  }

  /** Looks at the backend; several who ask at once get one answer. @throws what engines throw */
  examine(): Promise<void> {
    this.#examination ??= this.#examine().finally(() => {
      this.#examination = undefined;
    });
    return this.#examination;
  }

  async #examine(): Promise<void> {
    const { logger } = this.options;
    const before = this.#refusal?.message;
    const known = this.#owner?.id;
    const found = await this.#find();
    if ("id" in found) {
      if (found.id !== known) logger.info({ owner: found }, "the state's backend is this operator's");
      this.#owner = found;
      this.#refusal = undefined;
    } else {
      if (found.message !== before) logger.error({ ...found }, "the state's backend is refused");
      this.#refusal = found;
    }
    if (known !== undefined && this.#owner?.id !== known) this.#changes.replaced();
    if (this.#refusal?.message !== before) this.#changes.refusal();
  }

  /** @returns the record of this operator, or why the backend is not its own */
  async #find(): Promise<BackendOwner | Refusal> {
    const { engine, cluster: clusterOf, namespace } = this.options;
    const cluster = this.#cluster ?? (await attempt(clusterOf)); // it stays the same, whether the API server answers or not
    if (cluster instanceof Error) return unknown(`it cannot be told in which cluster this is: ${cluster.message}`);
    if (cluster === undefined) {
      return unknown("the operator may not `get` the Namespace kube-system, whose UID names the cluster");
    }
    this.#cluster = cluster;
    const own = { cluster: cluster.name, clusterUid: cluster.uid, namespace };
    const owner = await engine.backendOwner();
    if (owner !== undefined) return isOwner(owner, own) ? owner : foreign(owner, own);
    const problem = this.#owner === undefined ? await this.#whyNotClaimable() : GONE;
    if (problem !== undefined) {
      return unknown(`${problem}. ${NOTHING_HAPPENS}. To use this backend as it is: ${howToClaim(own)}`);
    }
    const claimed = await engine.claimBackend({ id: randomUUID(), ...own, since: new Date().toISOString() });
    return isOwner(claimed, own) ? claimed : foreign(claimed, own);
  }

  /** Why a backend without a record may be another's: it is new when no object has a stack, and ours with an object's of here. */
  async #whyNotClaimable(): Promise<string | undefined> {
    const holders = await attempt(this.options.holders);
    if (holders instanceof Error)
      return `it has no record of an owner, and objects cannot be listed: ${holders.message}`;
    const names = (await this.options.engine.listStacks())
      .map(({ name }) => name)
      .filter((name) => OBJECT_STACK.test(name));
    const stacks = new Set(names);
    const recorded = holders.filter(({ isRecorded }) => isRecorded);
    const present = holders.filter(({ stack }) => stacks.has(stack));
    if (present.length > 0) {
      for (const holder of present.slice(0, SAMPLE)) if (await this.#isOwnStack(holder)) return undefined;
      return `its stacks, such as ${present[0]?.stack}, were made for other objects of the same names, as those of another cluster`;
    }
    if (recorded.length > 0) {
      const example = recorded[0]?.stack;
      return `it has none of the stacks that objects of this cluster have, such as ${example}: check PULUMI_BACKEND_URL, and whether the volume is mounted`;
    }
    if (names.length === 0) return undefined;
    return `it has stacks of objects that are not in this cluster, such as ${names[0]}`;
  }

  /** Whether a stack is of this very object, as far as it tells: `pulumi up` knows names alone, and plugins' resources nothing. */
  async #isOwnStack({ stack, uid }: StackHolder): Promise<boolean> {
    const owner = recordedOwner(await this.options.engine.exportStack(stack));
    return owner === undefined || owner === uid || !isClusterUid(owner);
  }
}

const GONE =
  "the record of its owner was there and is gone, as of a volume that is not mounted: mount it, or restore a backup";

function foreign(owner: BackendOwner, own: OperatorIdentity): Refusal {
  const message =
    `the state's backend belongs to ${describeOwner(owner)}, and this is ${describeOwner(own)}. ${NOTHING_HAPPENS}. ` +
    `Set PULUMI_BACKEND_URL to a backend of its own; or, if no operator uses this one there any more: ${howToClaim(own, owner)}`;
  return failure("BackendForeign", message);
}

function unknown(problem: string): Refusal {
  return failure("BackendUnknown", `the state's backend may not be this operator's: ${problem}`);
}

function failure(reason: BackendReason, message: string): Refusal {
  return { errorClass: "retryable", reason, message, dependency: DEPENDENCY };
}

async function attempt<T>(ask: () => Promise<T>): Promise<T | Error> {
  try {
    return await ask();
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

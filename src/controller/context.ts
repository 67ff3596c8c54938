import type { KeyObject } from "node:crypto";
import type { Logger } from "pino";
import { type Failure, failureOf } from "../../providers/errors";
import { isApiError, type KubernetesClient, type LiveObject } from "../../providers/kubernetes/client";
import type { Cluster } from "../../providers/kubernetes/cluster";
import type { WorkContext } from "../../providers/provider";
import type { Settings } from "../../stacks/contract/annotations";
import type { NewCondition } from "../../stacks/contract/condition";
import type { AnyKind } from "../../stacks/contract/kind";
import type { OwnedEngine } from "../backend/owned-engine";
import type { BackendOwnership } from "../backend/ownership";
import type { ProgressReport } from "./action";
import type { Blockers } from "./blockers";
import type { Claims } from "./claims";
import type { Facts } from "./facts";
import type { KindCache } from "./kind-cache";
import type { ObjectItem } from "./object-item";
import type { ObjectState } from "./object-state";
import type { ObjectWriter } from "./object-writer";
import type { Plans } from "./plan-store";
import type { Rollout } from "./rollout";
import type { countRuns } from "./run-metrics";

/**
 * What a reconcile asks of the queue: nothing, another try with back-off, one when a dependency is back
 * ({@link Failure.dependency}), or one after a time.
 */
export type Result = "done" | "retry" | { dependency: string } | { requeueAfterMs: number };

/** What the reconciles of all objects of a kind have in common. */
export interface KindContext {
  kind: AnyKind;
  /** The digest of the kind's program. */
  programDigest: string;
  /** The key of the digests that plans and statuses tell. */
  planKey(): Promise<KeyObject>;
  /** Undefined where it may not be read. */
  cluster: Cluster | undefined;
  client: KubernetesClient;
  cache: KindCache;
  engine: OwnedEngine;
  backend: Pick<BackendOwnership, "refusal" | "problem">;
  /** Has the backend forget that a stack was destroyed: the finalizer of its object is removed, and nothing looks for the stack. */
  forgetDestroyed(stack: string): void;
  /** See {@link watchModes}. */
  readSettings(object: LiveObject): Promise<Settings>;
  /** Undefined where the API server serves no plans. */
  plans: Plans | undefined;
  writer: ObjectWriter;
  claims: Claims;
  /** Where a new version of the program does not reach all objects at once. */
  rollout?: Rollout | undefined;
  metrics: ReturnType<typeof countRuns>;
  logger: Logger;
}

/** One reconcile of one object. */
export interface Reconcile {
  context: KindContext;
  item: ObjectItem;
  /** The object as the cache shows it, or as our own last write returned it; for a destroy, as it is known to be now. */
  object: LiveObject;
  state: ObjectState;
  /** What a look at the blockers of the last attempt has found. */
  waiting: Awaited<ReturnType<Blockers["look"]>> | undefined;
  facts: Facts;
  /** Adds the object to each line. */
  logger: Logger;
  signal: AbortSignal;
  /** Ends an update gently: its object is deleted, or its time is over. */
  stop: AbortSignal;
  /** What providers are told of it. */
  work: WorkContext;
  progress: Progress;
}

/** What is told in an object's status while an update of it, or its destroy, runs. */
export interface Progress {
  /** The object as it was last written. */
  object: LiveObject;
  /** Resolves once what is to be reported before is written. @throws what the write threw */
  begin(conditions: readonly NewCondition[], progressReport: ProgressReport): Promise<void>;
  /**
   * Reports nothing any more, and resolves once no report is under way: one that lands after the next reconcile's status would
   * replace it. @returns the object as it then is
   */
  end(): Promise<LiveObject>;
}

/** What a step uses of a reconcile, and of what the objects of a kind have in common. */
export type Step<R extends keyof Reconcile, C extends keyof KindContext = never> = Pick<
  Reconcile,
  Exclude<R, "context">
> & { context: Pick<KindContext, C> };

/** Whether an error says that an object has changed, or has gone, since it was observed. The next reconcile sees that. */
export function isOutdated(error: unknown): boolean {
  return isApiError(error, 409) || (isApiError(error, 404) && error.reason !== "UnknownKind");
}

/**
 * What is told of an error; a bug is logged with its stack.
 *
 * @throws the error, when the object has changed meanwhile or the reconcile is to end: it is tried again, and nothing is told
 */
export function failureToTell(error: unknown, { logger, signal }: Step<"logger" | "signal">): Failure {
  if (isOutdated(error) || signal.aborted) throw error;
  const failure = failureOf(error);
  if (failure.errorClass === "bug") logger.error({ err: error }, "unexpected error");
  return failure;
}

import type { Logger } from "pino";
import { errorClassOf, errorMessageOf, errorObjectOf, errorReasonOf } from "../../providers/errors";
import { ApiError, type KubernetesClient, type LiveObject, type ResourceType } from "../../providers/kubernetes/client";
import { type AnyKind, kindName } from "../../stacks/contract/kind";
import type { StackEngine, UpdateFailure, UpdateResult } from "../automation/engine";
import type { ObjectStacks, Sharing } from "../runner/stack-runner";
import type { Claims } from "./claims";
import type { Cause } from "./decide";
import type { OwnedView } from "./drift";
import type { EventRecorder } from "./event-recorder";
import type { Memory } from "./object-state";
import type { ObjectWriter } from "./object-writer";
import type { StatusChange } from "./status";

/**
 * What a worker asks of the queue when it is done: nothing, another turn with back-off, one with the others that have failed
 * for the same, or one after a time.
 */
export type Outcome = "done" | "retry" | { retryWith: string } | { afterMs: number };

/** What one kind's reconciler works with. */
export interface ReconcilerOptions {
  kind: AnyKind;
  type: ResourceType;
  /** The digest of the kind's program. */
  program: string;
  client: KubernetesClient;
  /** See {@link clusterUid}; undefined where it may not be read. */
  cluster?: string | undefined;
  engine: Pick<StackEngine, "up" | "destroy" | "recorded" | "forget">;
  /** For a kind whose objects share stacks. */
  sharing?: Sharing;
  claims: Claims;
  recorder: EventRecorder;
  logger: Logger;
  /** The cached object of a key. */
  cached(key: string): LiveObject | undefined;
  /** The queue's name for a key of this kind. */
  queueKey(key: string): string;
  /** The cached objects that are labelled as owned by this UID. */
  owned(uid: string): LiveObject[];
  /** The cached objects that the kind observes for a key. */
  observed(key: string): LiveObject[];
  /** What the caches show of an owned object, by its id; `undefined` when its type is not watched. */
  view(id: string): OwnedView | undefined;
  /** How to call the object of this UID in a message; `undefined` when there is none. */
  describeOwner(uid: string): string | undefined;
  /** Told of every update that ran. */
  observe(result: UpdateResult, cause: Cause | "Deleting"): void;
}

/** What the turns of all objects of a kind have in common. */
export interface ReconcileContext extends ReconcilerOptions {
  stacks: ObjectStacks;
  writer: ObjectWriter;
}

/** One object's turn: what is known when it begins. */
export interface Turn {
  context: ReconcileContext;
  key: string;
  /** The object as the cache shows it, or as our own last write returned it. */
  object: LiveObject;
  memory: Memory;
  signal: AbortSignal;
}

/** What the caches show of what the object owns, without what we have deleted since. */
export function ownedOf({ context, object, memory }: Pick<Turn, "context" | "object" | "memory">): LiveObject[] {
  return context.owned(object.metadata.uid).filter((owned) => !memory.hasDeleted(owned));
}

/** @param object as it was last written, of which the status is composed */
export function writeStatus({ context, memory }: Turn, object: LiveObject, change: StatusChange): Promise<LiveObject> {
  return context.writer.writeStatus(object, memory, change);
}

export function loggerOf({ context, object: { metadata } }: Turn): Logger {
  const { namespace, name, generation } = metadata;
  return context.logger.child({ kind: kindName(context.kind), namespace, name, generation });
}

/** What we acted on is not what is there any more; the next look will see what is. */
export function isOutdated(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 404 || error.status === 409);
}

/** Another turn after a failure: objects that share a stack and fail for one reason back off together. */
export function retryAfter({ context, object }: Turn, [failure]: readonly UpdateFailure[]): Outcome {
  const place = context.stacks.placeOf(object);
  if (place === undefined || failure === undefined) return "retry";
  return { retryWith: [kindName(context.kind), place.partition, place.number, failure.reason, failure.message].join() };
}

export function failureOf(error: unknown, logger: Logger): UpdateFailure {
  const errorClass = errorClassOf(error);
  if (errorClass === "bug") logger.error({ err: error }, "unexpected error");
  const object = errorObjectOf(error);
  return { errorClass, reason: errorReasonOf(error), message: errorMessageOf(error), ...(object && { object }) };
}

import { type KubernetesClient, known, type LiveObject } from "../../providers/kubernetes/client";
import { describeTermination } from "../../providers/kubernetes/termination";
import { obeyedAnnotations } from "../../stacks/contract/annotations";
import { objectId, parseObjectId } from "../../stacks/contract/object";
import type { UpdateFailure } from "../automation/event-log";
import type { KindCache } from "./kind-cache";

/** The API server is asked so often for what no cache shows, … */
const POLL_MS = 5_000;
/** … and for what a cache shows, against events that never came. */
const CONFIRM_MS = 60_000;
/** When one thing is gone and another is not, that may follow at once: both are worth one attempt. */
const GATHER_MS = 2_000;

/** Where what is waited for is looked up. */
interface Sources {
  cache: Pick<KindCache, "view">;
  client: KubernetesClient;
}

/** What an update, or a destroy, waits for that ended "not yet" (`PendingError`). */
export class Blockers {
  /** The state of the object that the attempt was for. */
  readonly #of: string;
  /** The resources that the attempts so far have deleted, in words. */
  readonly deleted: readonly string[];
  readonly #pending: readonly UpdateFailure[];
  /** All other failures, which only the user can correct. */
  readonly #others: readonly UpdateFailure[];
  /** Of the failures, those about objects that a cache has shown; it then also shows that they are gone. */
  readonly #cached: ReadonlySet<UpdateFailure>;
  readonly #since = performance.now();
  /** When the API server was asked last, by `performance.now()`. */
  #checkedAt = this.#since;

  constructor(
    context: Sources,
    object: LiveObject,
    failures: readonly UpdateFailure[],
    deleted: readonly string[] = [],
  ) {
    this.deleted = deleted;
    this.#of = stateOf(object);
    this.#pending = failures.filter(({ errorClass }) => errorClass === "pending");
    this.#others = failures.filter(({ errorClass }) => errorClass !== "pending");
    this.#cached = new Set(this.#pending.filter((failure) => cachedOf(context, failure) !== undefined));
  }

  /**
   * Looks whether all of it is still there: then nothing has to be tried again for `remainingMs`; 0 when something is gone, or the
   * object has changed.
   *
   * @returns with when the API server was asked last, for {@link looked}
   */
  async look(context: Sources, object: LiveObject): Promise<{ remainingMs: number; checkedAt: number }> {
    if (stateOf(object) !== this.#of) return { remainingMs: 0, checkedAt: this.#checkedAt };
    const intervalMs = this.#cached.size === this.#pending.length ? CONFIRM_MS : POLL_MS;
    const waitedMs = performance.now() - this.#checkedAt;
    const mustAsk = waitedMs >= intervalMs;
    const answers = await Promise.all(
      this.#pending.map((failure) =>
        // Without an answer it is taken to be there.
        mustAsk
          ? isThere(context, failure).catch(() => true)
          : !this.#cached.has(failure) || cachedOf(context, failure) !== undefined,
      ),
    );
    const checkedAt = mustAsk ? performance.now() : this.#checkedAt; // the answers may have taken longer than the interval
    const left = answers.filter((answer) => answer).length;
    if (left === this.#pending.length) return { remainingMs: mustAsk ? intervalMs : intervalMs - waitedMs, checkedAt };
    return { remainingMs: left > 0 ? Math.max(0, this.#since + GATHER_MS - performance.now()) : 0, checkedAt };
  }

  /** The API server need not be asked again for a while. */
  looked({ checkedAt }: { checkedAt: number }): void {
    this.#checkedAt = checkedAt;
  }

  /** Whether the object of this id is missing because of it: it is waited for, or goes with its namespace. */
  accountsFor(id: string): boolean {
    return this.#pending.some(({ object }) => {
      if (object === undefined) return false;
      return (
        objectId(object) === id || (object.kind === "Namespace" && parseObjectId(id).namespace === object.metadata.name)
      );
    });
  }

  /** The failures, with what is waited for as it is now. */
  async describe(context: Sources): Promise<UpdateFailure[]> {
    const pending = await Promise.all(
      this.#pending.map(async (failure) => {
        const cached = cachedOf(context, failure);
        return cached === undefined
          ? failure
          : { ...failure, message: await describeTermination(context.client, cached) };
      }),
    );
    return [...this.#others, ...pending];
  }
}

function stateOf(object: LiveObject): string {
  const { uid, generation, deletionTimestamp } = object.metadata;
  const { releases, ignoreFields } = obeyedAnnotations(object); // what is to stay need not be waited for
  return [uid, generation, deletionTimestamp, releases, ...ignoreFields].join(" ");
}

/** What a cache shows of what a failure waits for. */
function cachedOf({ cache }: Sources, { object }: UpdateFailure): LiveObject | undefined {
  const cached = object && cache.view(objectId(object))?.object;
  return cached?.metadata.uid === object?.metadata.uid ? cached : undefined;
}

/** What names no object can only be tried again. */
async function isThere({ client }: Sources, { object }: UpdateFailure): Promise<boolean> {
  if (object === undefined) return false;
  return (await known(client.find(object)))?.metadata.uid === object.metadata.uid;
}

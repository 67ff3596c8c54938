import type { LiveObject } from "../../providers/kubernetes/client";
import { describeTermination } from "../../providers/kubernetes/termination";
import { objectId } from "../../stacks/contract/object";
import type { UpdateFailure } from "../automation/engine";
import { deletingConditions, failedConditions } from "./conditions";
import { type Turn, writeStatus } from "./context";

/** The API server is asked so often for what no cache shows, … */
const POLL_MS = 5_000;
/** … and for what a cache shows, against events that never came. */
const CONFIRM_MS = 60_000;
/** When one thing is gone and another is not, that may follow at once: both are worth one attempt. */
const GATHER_MS = 2_000;

/** What an update, or a destroy, waits for that ended "not yet" (`PendingError`). */
export class Pending {
  /** The state of the object that the attempt was for. */
  readonly #of: string;
  /** Those that are "not yet", and all others, which only the user can mend. */
  readonly failures: readonly UpdateFailure[];
  /** How many resources the attempts so far have deleted. */
  readonly deleted: number;
  readonly #others: readonly UpdateFailure[];
  /** Of the failures, those about objects that a cache has shown; it then also shows that they are gone. */
  readonly #shown: ReadonlySet<UpdateFailure>;
  readonly #since = performance.now();
  /** When the API server was asked last, by `performance.now()`. */
  #checkedAt = this.#since;

  constructor(turn: Turn, failures: readonly UpdateFailure[], deleted = 0) {
    this.deleted = deleted;
    this.#of = stateOf(turn.object);
    this.failures = failures.filter(({ errorClass }) => errorClass === "pending");
    this.#others = failures.filter(({ errorClass }) => errorClass !== "pending");
    this.#shown = new Set(this.failures.filter((failure) => cachedOf(turn, failure) !== undefined));
  }

  /**
   * How long nothing has to be tried again, in ms, because all of it is still there; 0 when something is gone, or the
   * object has changed.
   */
  async holdsForMs(turn: Turn): Promise<number> {
    if (stateOf(turn.object) !== this.#of) return 0;
    const intervalMs = this.#shown.size === this.failures.length ? CONFIRM_MS : POLL_MS;
    const mustAsk = performance.now() - this.#checkedAt >= intervalMs;
    if (mustAsk) this.#checkedAt = performance.now();
    const answers = await Promise.all(
      this.failures.map((failure) =>
        // Without an answer it is taken to be there.
        mustAsk
          ? isThere(turn, failure).catch(() => true)
          : !this.#shown.has(failure) || cachedOf(turn, failure) !== undefined,
      ),
    );
    const left = answers.filter((answer) => answer).length;
    if (left === this.failures.length) return this.#checkedAt + intervalMs - performance.now();
    return left > 0 ? Math.max(0, this.#since + GATHER_MS - performance.now()) : 0;
  }

  /** Whether the API server has nothing of it any more. */
  async isOver(turn: Turn): Promise<boolean> {
    const answers = await Promise.all(this.failures.map((failure) => isThere(turn, failure)));
    return answers.every((answer) => !answer) && this.failures.every(({ object }) => object !== undefined);
  }

  /** Whether the object of this id is missing because of it: it is waited for, or goes with its namespace. */
  covers(id: string): boolean {
    return this.failures.some(({ object }) => {
      if (object === undefined) return false;
      return objectId(object) === id || (object.kind === "Namespace" && id.split("/").at(-2) === object.metadata.name);
    });
  }

  /** Says what is waited for, as it is now. */
  async report(turn: Turn): Promise<void> {
    const { client } = turn.context;
    const failures = await Promise.all(
      this.failures.map(async (failure) => {
        const cached = cachedOf(turn, failure);
        return cached === undefined ? failure : { ...failure, message: await describeTermination(client, cached) };
      }),
    );
    await writePending(turn, turn.object, [...this.#others, ...failures]);
  }
}

/** Says in the status of an object, as it was last written, what it waits for. */
export function writePending(turn: Turn, object: LiveObject, failures: readonly UpdateFailure[]): Promise<LiveObject> {
  const { generation = 0, deletionTimestamp } = object.metadata;
  const conditions = (deletionTimestamp ? deletingConditions : failedConditions)(generation, failures);
  return writeStatus(turn, object, { conditions });
}

function stateOf({ metadata: { uid, generation, deletionTimestamp } }: LiveObject): string {
  return `${uid} ${generation} ${deletionTimestamp ?? ""}`;
}

/** What a cache shows of what a failure waits for. */
function cachedOf({ context }: Turn, { object }: UpdateFailure): LiveObject | undefined {
  const cached = object && context.view(objectId(object))?.object;
  return cached?.metadata.uid === object?.metadata.uid ? cached : undefined;
}

/** What names no object can only be tried again. */
async function isThere({ context: { client } }: Turn, { object }: UpdateFailure): Promise<boolean> {
  if (object === undefined) return false;
  const { name, namespace, uid } = object.metadata;
  const live = await client.get(await client.resourceType(object.apiVersion, object.kind), name, namespace);
  return live?.metadata.uid === uid;
}

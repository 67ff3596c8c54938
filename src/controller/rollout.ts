import type { Failure } from "../../providers/errors";
import type { RolloutCounts } from "../telemetry/metrics";
import type { Action } from "./action";
import type { Facts } from "./facts";

/** How a new version of a kind's program reaches its objects. */
export interface RolloutPolicy {
  /** The share of a kind's objects that are updated before the next ones, from 0 (exclusive) to 1. */
  budget: number;
  /** After so many failed objects no more are begun. */
  maxFailures: number;
}

interface RolloutOptions extends RolloutPolicy {
  /** How many objects the kind has. */
  total(): number;
  /** Reconciles an object again. */
  requeue(key: string): void;
}

type RolledOutFacts = Pick<Facts, "object" | "settings" | "stack" | "last">;

/**
 * Brings a new version of a kind's program to its objects wave by wave: the next one begins when all of the present one
 * have been updated, and none begins after too many have failed. What an object's own change, drift or a request calls for
 * is done at once; it counts, as it runs the new version as well.
 *
 * After a restart it begins again with what is left.
 */
export class Rollout {
  readonly #wave = new Set<string>();
  /** Those of the wave that are not done. */
  readonly #open = new Set<string>();
  readonly #waiting = new Set<string>();
  readonly #failed = new Set<string>();

  constructor(private readonly options: RolloutOptions) {}

  /** Whether an object that has the former version may be updated now. Changes nothing. */
  admits(key: string): boolean {
    return this.#open.has(key) || !(this.#isStopped || this.#wave.size >= this.#limit || this.#wave.has(key));
  }

  /** An object that has the former version is about to be updated. @returns whether it may; if not, it waits */
  begin(key: string): boolean {
    if (!this.admits(key)) {
      this.#waiting.add(key); // of those that were admitted at the same time, others were quicker
      return false;
    }
    this.#waiting.delete(key);
    this.#wave.add(key);
    this.#open.add(key);
    return true;
  }

  /** Takes in what came of an object's reconcile. One that keeps the former version is requeued when it may be updated. */
  reconciled(
    key: string,
    { object, settings: { mode }, stack, last }: RolledOutFacts,
    action: Action,
    outcome: { type: string; failures?: readonly Pick<Failure, "errorClass">[] },
  ): void {
    const { stack: former } = object.status;
    const hadFormer = former !== undefined && former.program !== stack.program;
    const appliesNothing = mode === "Observe" || mode === "Propose" || outcome.type === "proposed";
    const waits = action.type === "nothing" && last.preview !== undefined;
    const isLeftOut = appliesNothing || waits || ["pause", "finish", "destroy"].includes(action.type);
    if (isLeftOut || (hadFormer && ["updated", "sameDeclarations"].includes(outcome.type))) this.drop(key);
    else if (!hadFormer) return;
    else if (outcome.type === "updateFailed") {
      if (!outcome.failures?.some(({ errorClass }) => errorClass !== "pending")) return;
      this.#failed.add(key);
      this.#close(key);
    } else if (!stack.rolledOut) {
      this.#waiting.add(key);
      if (this.admits(key)) this.options.requeue(key); // a wave has ended meanwhile
    }
  }

  /** An object is gone, or is another replica's: the rollout does not wait for it. */
  drop(key: string): void {
    this.#failed.delete(key);
    this.#close(key);
  }

  get counts(): RolloutCounts {
    const [waiting, updating, failed] = [this.#waiting.size, this.#open.size, this.#failed.size];
    return { waiting, updating, failed, stopped: this.#isStopped };
  }

  get #isStopped(): boolean {
    return this.#failed.size >= this.options.maxFailures;
  }

  get #limit(): number {
    return Math.max(1, Math.floor(this.options.total() * this.options.budget));
  }

  #close(key: string): void {
    this.#waiting.delete(key);
    this.#open.delete(key);
    if (this.#open.size > 0 || this.#isStopped) return;
    this.#wave.clear();
    let places = this.#limit;
    for (const next of this.#waiting) {
      if (places-- === 0) break;
      this.options.requeue(next);
    }
  }
}

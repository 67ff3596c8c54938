import { hash } from "node:crypto";
import { CodeEndedError } from "../../stacks/contract/code-ended";
import { exponentialBackoff } from "../queue/backoff";
import type { Target } from "./messages";
import type { Ending } from "./run";
import type { CallOptions } from "./runner";

/** What is known of one function for one object. */
interface Suspicion {
  /** Whether it may end its process, so that it runs where that harms no other. */
  apart: boolean;
  /** How often it has ended without an answer, for certain. */
  times: number;
  error?: CodeEndedError;
  at: number;
}

const BACKOFF = { baseMs: 1_000, capMs: 300_000 };
const KEPT_MS = 3_600_000;

/** Remembers which functions have, or may have, ended a process: for which object, in which generation of it. */
export class Suspicions {
  readonly #all = new Map<string, Suspicion>();

  get(key: string): Suspicion | undefined {
    return this.#all.get(key);
  }

  get isEmpty(): boolean {
    return this.#all.size === 0;
  }

  /** The process ended while this and others ran. */
  suspect(key: string): Suspicion {
    return this.#note(key, { times: 0, ...this.#all.get(key), apart: true });
  }

  /** This has ended without an answer. @returns the error for now and until it may run again */
  convict(key: string, { reason, message }: Ending, { apart }: { apart: boolean }): CodeEndedError {
    const before = this.#all.get(key);
    const times = (before?.times ?? 0) + 1;
    const error = new CodeEndedError(reason, message, performance.now() + exponentialBackoff(times - 1, BACKOFF));
    this.#note(key, { times, error, apart: apart || before?.apart === true });
    return error;
  }

  acquit(key: string): void {
    this.#all.delete(key);
  }

  #note(key: string, suspicion: Omit<Suspicion, "at">): Suspicion {
    const at = performance.now();
    // In the order of their times: a note moves to the end.
    for (const [old, { at: noted }] of this.#all) {
      if (noted > at - KEPT_MS) break;
      this.#all.delete(old);
    }
    this.#all.delete(key);
    const dated = { ...suspicion, at };
    this.#all.set(key, dated);
    return dated;
  }
}

export interface Subject {
  object: string;
  /** Names function and object, so that another object, or a new spec, is not held to what this one did. */
  key: string;
}

export function subjectOf(
  target: Target,
  args: readonly unknown[],
  { context }: Pick<CallOptions, "context">,
): Subject {
  const { uid, generation } = metadataOf(args[0]);
  const object = uid ?? context?.object?.uid ?? digestOf(args);
  const about = uid === undefined ? digestOf(args) : `${uid}/${generation ?? ""}`;
  return { object, key: `${JSON.stringify(target)} ${object} ${about}` };
}

function metadataOf(value: unknown): { uid?: string; generation?: number } {
  const metadata = typeof value === "object" && value !== null && "metadata" in value ? value.metadata : undefined;
  return typeof metadata === "object" && metadata !== null ? metadata : {};
}

function digestOf(args: readonly unknown[]): string {
  return hash("sha256", JSON.stringify(args) ?? "");
}

import { RetryableError } from "../../providers/errors";
import type { Log } from "../../providers/log";
import { holdOf } from "../../providers/observation";
import type { ProviderContext } from "../../providers/provider";
import type { HoldData, SessionData } from "./messages";

interface CallData {
  signal: AbortSignal;
  log: Log;
  progress: ProviderContext["progress"];
  hold: HoldData | undefined;
}

/** In the process of a package: what the calls of each update have in common, with the right to write. */
export class Sessions {
  readonly #sessions = new Map<number, { context: ProviderContext; end: AbortController }>();
  #allowedUntil = Number.POSITIVE_INFINITY;

  contextOf(session: SessionData, { signal, log, progress, hold }: CallData): ProviderContext {
    const { context } = this.#sessions.get(session.id) ?? this.#open(session, { log, progress });
    const observations = new Map(hold?.observation === undefined ? [] : [[hold.urn, hold.observation]]);
    return {
      ...context,
      signal: AbortSignal.any([context.signal, signal]),
      ...{ log, progress },
      ...(hold && { hold: holdOf(observations, hold.urn, hold.call) }),
    };
  }

  /** From now on, none of its calls writes. */
  end(id: number, error: Error): void {
    this.#sessions.get(id)?.end.abort(error);
    this.#sessions.delete(id);
  }

  /** What writes may do so for so long, unless this is called again: an operator that is frozen has lost its Lease. */
  allow(ms: number): void {
    this.#allowedUntil = performance.now() + ms;
  }

  #open({ id, object, remembers }: SessionData, told: Pick<ProviderContext, "log" | "progress">) {
    const end = new AbortController();
    const { signal } = end;
    const check = () => {
      signal.throwIfAborted();
      if (performance.now() < this.#allowedUntil) return;
      throw new RetryableError("LeaseLost", "the operator has not told for too long that it may write");
    };
    const snapshot = remembers ? new Map<string, Promise<unknown>>() : undefined;
    const session = { context: { fence: { check, signal }, signal, ...told, object, snapshot }, end };
    this.#sessions.set(id, session);
    return session;
  }
}

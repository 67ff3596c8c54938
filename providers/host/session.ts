import { setMaxListeners } from "node:events";
import { type Failure, RetryableError } from "../errors";
import type { Fence } from "../fence";

/** A resource operation that a provider refused, with the class that is lost on the way through the engine. */
export interface ResourceFailure extends Failure {
  urn: string;
}

export interface SessionOptions {
  /** The fence of the update's calls. */
  fence?: Fence | undefined;
  /** Deletions release what was made instead of deleting it. */
  release?: boolean | undefined;
  /**
   * Told the URN of a resource whose predecessor could not be deleted before it is made. With `--continue-on-error`, the
   * engine does not answer the program for it and waits for the program to end (pulumi/pulumi#16373).
   */
  onUnreplaced?: ((urn: string) => void) | undefined;
}

/** What one update asks of the providers. */
export class ProviderSession {
  /** What failed so far. */
  readonly failures: ResourceFailure[] = [];
  /** The URNs of what is deleted before its replacement is made. */
  readonly deletedFirst = new Set<string>();
  /** The fence of its calls: ends with the update's own fence, and when the session is closed. */
  readonly fence: Fence;
  readonly #end = new AbortController();
  readonly #onClose: () => void;

  constructor(
    readonly options: SessionOptions,
    onClose: () => void,
  ) {
    const { fence } = options;
    const { signal } = this.#end;
    setMaxListeners(0, signal); // each connection to a database listens to it
    this.#onClose = onClose;
    this.fence = {
      check: () => {
        fence?.check();
        signal.throwIfAborted();
      },
      signal,
    };
    if (fence === undefined) return;
    const end = () => this.#end.abort(fence.signal.reason);
    if (fence.signal.aborted) end();
    else fence.signal.addEventListener("abort", end, { signal });
  }

  /** From now on, none of its calls writes. */
  close(): void {
    this.#end.abort(new RetryableError("UpdateEnded", "the update that this belongs to has ended"));
    this.#onClose();
  }
}

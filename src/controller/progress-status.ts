import type { LiveObject } from "../../providers/kubernetes/client";
import type { NewCondition } from "../../stacks/contract/condition";
import type { Reconcile } from "./context";

/** A quiet update is reported only if it takes longer than this. */
const REPORT_AFTER_MS = 10_000;

/**
 * Reports in an object's status that an update of it runs: at once, beside the update, or only when it takes long, so that
 * a thousand short ones are not two thousand writes.
 */
export class ProgressStatus {
  readonly #before: LiveObject;
  readonly #timer: NodeJS.Timeout | undefined;
  #written: Promise<LiveObject> | undefined;

  constructor({ context, state }: Reconcile, before: LiveObject, conditions: NewCondition[], quiet: boolean) {
    this.#before = before;
    const report = () => {
      this.#written = context.writer.writeStatus(before, state, { conditions });
      this.#written.catch(() => {}); // `end` throws it
    };
    if (quiet) this.#timer = setTimeout(report, REPORT_AFTER_MS);
    else report();
  }

  /** Reports nothing any more; resolves with the object as it then is. @throws what the write threw */
  end(): Promise<LiveObject> {
    this.cancel();
    return this.#written ?? Promise.resolve(this.#before);
  }

  /** Reports nothing any more. */
  cancel(): void {
    clearTimeout(this.#timer);
  }
}

import type { LiveObject } from "../../providers/kubernetes/client";
import type { NewCondition } from "../../stacks/contract/condition";
import type { Reconcile } from "./context";
import type { ProgressReport } from "./plan";

/** What takes longer than this is reported in any case; a report costs a quarter of what a small update does. */
const REPORT_AFTER_MS = 2_000;

/** Reports in an object's status that an update of it, or its destroy, runs. */
export class ProgressStatus {
  readonly #before: LiveObject;
  readonly #timer: NodeJS.Timeout | undefined;
  #written: Promise<LiveObject> | undefined;

  constructor(
    { context, state }: Reconcile,
    before: LiveObject,
    conditions: NewCondition[],
    progressReport: ProgressReport,
  ) {
    this.#before = before;
    const report = () => {
      this.#written = context.writer.writeStatus(before, state, { conditions });
      this.#written.catch(() => {}); // `end` throws it
    };
    if (progressReport === "late") this.#timer = setTimeout(report, REPORT_AFTER_MS);
    else report();
  }

  /** Resolves once what is to be reported at the beginning is written. @throws what the write threw */
  async begun(): Promise<void> {
    await this.#written;
  }

  /** Reports nothing any more; resolves with the object as it is once no report is under way. @throws what the write threw */
  end(): Promise<LiveObject> {
    clearTimeout(this.#timer);
    return this.#written ?? Promise.resolve(this.#before);
  }
}

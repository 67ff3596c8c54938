import type { LiveObject } from "../../providers/kubernetes/client";
import type { NewCondition } from "../../stacks/contract/condition";
import type { ProgressReport } from "./action";
import type { Step } from "./context";
import { report } from "./report";

/** What takes longer than this is reported in any case; a report costs a quarter of what a small update does. */
const REPORT_AFTER_MS = 2_000;

/** Reports in an object's status that an update of it, or its destroy, runs. */
export class ProgressStatus {
  /** The object as it was last written, but for a report. */
  object: LiveObject;
  #timer: NodeJS.Timeout | undefined;
  #written: Promise<LiveObject> | undefined;

  constructor(private readonly reconcile: Step<"object" | "facts" | "state", "writer">) {
    this.object = reconcile.object;
  }

  /** Resolves once what is to be reported before is written. @throws what the write threw */
  async begin(conditions: NewCondition[], progressReport: ProgressReport): Promise<void> {
    const write = () => {
      this.#written = report(this.reconcile, this.object, { conditions });
      this.#written.catch(() => {}); // `end` does without it
    };
    if (progressReport === "late") this.#timer = setTimeout(write, REPORT_AFTER_MS);
    else write();
    if (progressReport === "before") await this.#written;
  }

  /**
   * Reports nothing any more, and resolves once no report is under way: one that lands after the next reconcile's status would
   * replace it. @returns the object as it then is
   */
  async end(): Promise<LiveObject> {
    clearTimeout(this.#timer);
    return (await this.#written?.catch(() => undefined)) ?? this.object;
  }
}

import { pino } from "pino";
import type { Item } from "../../src/queue/fair-queue";
import { WorkQueue, type WorkQueueOptions } from "../../src/queue/work-queue";

/** A queue that takes all items, which are one group, unless a test says otherwise. */
export function workQueueOf(different: Partial<WorkQueueOptions<Item>>): WorkQueue<Item> {
  return new WorkQueue<Item>({
    logger: pino({ level: "silent" }),
    fairnessKeyOf: () => "",
    groupOf: () => "",
    observer: { added() {}, retried() {}, depthChanged() {}, started() {}, finished() {} },
    accepts: () => true,
    ...different,
  });
}

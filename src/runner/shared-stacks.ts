import type { LimitFunction } from "p-limit";
import type { Logger } from "pino";
import type { LiveObject } from "../../providers/kubernetes/client";
import { type AnyKind, kindName, statusOf } from "../../stacks/contract/kind";
import { FINALIZER, type NamespacedKey, objectKey, stackName } from "../../stacks/contract/object";
import { recordedAssignment, type StackAssignment, sharedStackName } from "../../stacks/contract/shared-stack";
import type { UpdateResult } from "../automation/engine";
import type { UpdateFailure } from "../automation/failures";
import { WorkQueue } from "../queue/work-queue";
import { Assignments } from "./assignments";
import { assignmentId, Batches } from "./batches";
import { partialResult } from "./members";
import { type RunnerEngine, type StackRun, type StackRunner, shardKey } from "./stack-runner";
import { StaleMembers } from "./stale-members";

/** Which shards' work is this replica's. */
export interface ShardGuard {
  holds(shardKey: string): boolean;
  /** Runs work under the shard's Lease. @returns `undefined` when the shard is another replica's */
  work<T>(shardKey: string, signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T | undefined>;
}

export interface SharedStacksOptions {
  kind: AnyKind;
  engine: RunnerEngine;
  /** How many updates run at the same time, of all kinds together. */
  slots: LimitFunction;
  shards?: ShardGuard | undefined;
  /** Among how many partitions the namespaces are spread; without it, each is one. */
  partitions: number | undefined;
  /** An object as the cache shows it. */
  find(key: string): LiveObject | undefined;
  findFresh(objects: readonly LiveObject[], total: (namespace: string) => number): Promise<ReadonlySet<string>>;
  /** Told of every update that ran. */
  observe(result: UpdateResult): void;
  logger: Logger;
  /** Interrupts what runs. */
  signal: AbortSignal;
}

interface StackItem {
  id: string;
  assignment: StackAssignment;
}

/** A few stacks for all objects of a namespace; what waits for a stack is one update. */
export class SharedStacks implements StackRunner {
  readonly shared = true;
  readonly #options: SharedStacksOptions;
  readonly #assignments: Assignments;
  readonly #batches: Batches;
  readonly #stale: StaleMembers;
  /** Objects that were destroyed and whose end no event has told yet. */
  readonly #destroyed = new Set<string>();
  readonly #queue: WorkQueue<StackItem>;

  constructor(options: SharedStacksOptions) {
    const { kind, engine, observe, findFresh, partitions, logger, slots, signal } = options;
    this.#options = options;
    this.#assignments = new Assignments(kind, { partitions });
    const shared = {
      kind,
      engine,
      findFresh: (objects: readonly LiveObject[]) =>
        findFresh(objects, (namespace) => this.#assignments.total(namespace)),
      enqueue: (assignment: StackAssignment) => this.#queue.add({ id: assignmentId(assignment), assignment }),
    };
    this.#batches = new Batches({ ...shared, observe });
    this.#stale = new StaleMembers({ ...shared, find: options.find, logger });
    this.#queue = new WorkQueue({
      logger,
      classOf: ({ assignment }) => ({ fairnessKey: assignment.partition, waits: false }),
    });
    void this.#queue.run(slots.concurrency, (item) => this.#work(item), signal);
  }

  assignmentOf(object: LiveObject): StackAssignment {
    return this.#assignments.assign(object);
  }

  /** All shared stacks of a partition go to one replica: it has to know what is in each to fill them. */
  shardKeyOf(object: NamespacedKey): string {
    return this.#shardKey(this.#assignments.partitionOf(object));
  }

  backoffGroupOf(object: LiveObject, failure: UpdateFailure | undefined): string | undefined {
    const assignment = this.#assignments.get(objectKey(object.metadata)); // of one that is gone by now, there is none
    if (failure === undefined || assignment === undefined) return undefined;
    return [kindName(this.#options.kind), assignmentId(assignment), failure.reason, failure.message].join();
  }

  open(found: LiveObject): StackRun {
    const key = objectKey(found.metadata);
    const former = this.#formerOf(key, found);
    const assignment = this.assignmentOf(found);
    const participant = this.#batches.join(assignment, key);
    const request: typeof participant.request = async (request) =>
      this.#holds(assignment.partition)
        ? participant.request(request)
        : partialResult(request.operation.type, "interrupted");
    return {
      stack: { name: sharedStackName(this.#options.kind, assignment), assignment },
      up: (program, { refresh, verified }) =>
        request({
          operation: { type: "up", program, refresh },
          cached: verified ? undefined : found,
          former,
        }),
      destroy: async ({ release, verified }) => {
        const cached = verified ? undefined : found;
        const result = await request({ operation: { type: "destroy", release }, cached, former });
        if (result.outcome === "succeeded") this.#destroyed.add(key);
        return result;
      },
      close: () => participant.leave(),
    };
  }

  async forgetEmptied(): Promise<boolean> {
    return false;
  }

  seen(object: LiveObject): void {
    const key = objectKey(object.metadata);
    const former = this.#assignments.get(key);
    this.#assignments.seen(object);
    if (object.metadata.deletionTimestamp === undefined) this.#destroyed.delete(key); // a successor of the same name
    if (former !== undefined && !this.#isIn(former, key)) this.#stale.suspect(key, former);
    this.#stale.seen(object);
  }

  gone(key: string): void {
    const former = this.#assignments.get(key);
    this.#assignments.gone(key);
    const isLeft = !this.#destroyed.delete(key) && former !== undefined;
    if (isLeft && this.#holds(former.partition)) this.#stale.suspect(key, former);
  }

  takeOver(includes: (shardKey: string) => boolean): Promise<void> {
    const { kind, signal } = this.#options;
    const used = new Set(this.#assignments.used().map((assignment) => sharedStackName(kind, assignment)));
    return this.#stale.lookInUnused(used, (partition) => includes(this.#shardKey(partition)), signal);
  }

  interrupt(includes: (shardKey: string) => boolean): void {
    for (const assignment of this.#assignments.used()) {
      if (includes(this.#shardKey(assignment.partition))) this.#batches.interrupt(assignment);
    }
  }

  stop(): Promise<void> {
    this.#batches.stop();
    return this.#queue.drain();
  }

  #shardKey(partition: string): string {
    const { kind } = this.#options;
    return shardKey(kind, `${kindName(kind)}|${partition}`);
  }

  #holds(partition: string): boolean {
    return this.#options.shards?.holds(this.#shardKey(partition)) ?? true;
  }

  /** When the stack is another replica's, or becomes it, the objects that wait for its update are interrupted. */
  async #work(item: StackItem): Promise<void> {
    const { assignment } = item;
    const { shards, slots, signal } = this.#options;
    const gatherMs = this.#batches.gatherMs(assignment);
    if (gatherMs > 0) return this.#queue.addAfter(item, gatherMs);
    const shardKey = this.#shardKey(assignment.partition);
    const run = async (signal: AbortSignal) => {
      await this.#batches.run(assignment, signal);
      await this.#removeStale(assignment, signal);
    };
    if (shards === undefined) await slots(() => run(signal));
    else await slots(() => shards.work(shardKey, signal, run));
    this.#queue.forget(item); // earlier failures do not delay later ones
    if (shards?.holds(shardKey) === false) this.#batches.interrupt(assignment);
  }

  /** A stack's state is looked into once, after its first update in this process; objects tell the rest. */
  async #removeStale(assignment: StackAssignment, signal: AbortSignal): Promise<void> {
    const { engine } = this.#options;
    if (signal.aborted) return;
    if (engine.isDirect && this.#assignments.isFirstLook(assignment)) {
      await this.#stale.look(assignment, (key) => this.#isIn(assignment, key), signal);
    }
    await this.#stale.remove(assignment, signal);
  }

  #isIn(stack: StackAssignment, key: string): boolean {
    const assigned = this.#assignments.get(key);
    return assigned !== undefined && assignmentId(assigned) === assignmentId(stack);
  }

  /**
   * The stack that the object had to itself before its kind shared stacks, until it has been left. An object of that
   * time whose first update was cut off has no record at all, but a finalizer.
   */
  #formerOf(key: string, found: LiveObject): string | undefined {
    const { kind } = this.#options;
    const own = stackName(kind, key);
    const recorded = statusOf(found).stack?.name;
    const isOfThatTime =
      recorded === undefined
        ? found.metadata.finalizers?.includes(FINALIZER) === true && recordedAssignment(kind, found) === undefined
        : recorded === own;
    return isOfThatTime ? own : undefined;
  }
}

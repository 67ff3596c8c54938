import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { errorMessageOf } from "../../providers/errors";
import type { LiveObject } from "../../providers/kubernetes/client";
import { type AnyKind, statusOf } from "../../stacks/contract/kind";
import { objectKey, stackName } from "../../stacks/contract/object";
import type { StackEngine } from "../automation/engine";
import type { BackendOwnership } from "../backend/ownership";
import type { Controller } from "../controller/controller";

/** How soon a backend that is refused is surveyed after it has become the operator's. */
const REFUSED_MS = 10_000;

/**
 * Compares the backend's stacks with the stacks that objects name, at the start and from time to time: objects at rest read no
 * state, so only this survey notices that a state is lost, or restored. An update then checks the finding under the stack's
 * lock. The backend of another operator is not surveyed.
 */
export async function surveyStacks(
  controllers: () => Iterable<Pick<Controller, "kind" | "list" | "stackSurveyed">>,
  engine: Pick<StackEngine, "listStacks">,
  backend: Pick<BackendOwnership, "problem">,
  intervalMs: number,
  logger: Logger,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    if ((await backend.problem()) !== undefined) {
      await delay(Math.min(intervalMs, REFUSED_MS), undefined, { signal }).catch(() => {});
      continue;
    }
    // Looked at first: a stack is there before an object names it.
    const objects = [...controllers()].flatMap((controller) =>
      controller.list().map((one) => [controller, one] as const),
    );
    const named = objects.filter(([{ kind }, object]) => {
      return object.metadata.deletionTimestamp === undefined && statusOf(object).stack?.name === nameOf(kind, object);
    });
    try {
      const listed = named.length === 0 ? [] : await engine.listStacks(signal);
      const names = new Set(listed.map(({ name }) => name));
      for (const [controller, object] of named) {
        controller.stackSurveyed(object, names.has(nameOf(controller.kind, object)));
      }
    } catch (error) {
      if (!signal.aborted) logger.warn({ reason: errorMessageOf(error) }, "failed to list the stacks");
    }
    await delay(intervalMs, undefined, { signal }).catch(() => {});
  }
}

function nameOf(kind: AnyKind, { metadata }: LiveObject): string {
  return stackName(kind, objectKey(metadata));
}

/** Objects that are deleted together are told of together. */
const GATHER_MS = 50;

/**
 * Has the backend forget that stacks were destroyed, as the finalizers of their objects are removed. What the backend does not forget,
 * because the operator ends, is forgotten after a month.
 */
export class DestroyedStacks {
  #stacks: string[] = [];
  #flushed: Promise<void> | undefined;

  constructor(
    private readonly engine: Pick<StackEngine, "forgetDestroyed">,
    private readonly logger: Logger,
  ) {}

  add(stack: string): void {
    this.#stacks.push(stack);
    this.#flushed ??= new Promise<void>((resolve) => setTimeout(resolve, GATHER_MS)).then(() => this.#flush());
  }

  /** Resolves when the backend was told of all of them. */
  async ended(): Promise<void> {
    await this.#flushed;
  }

  async #flush(): Promise<void> {
    const stacks = this.#stacks;
    this.#stacks = [];
    this.#flushed = undefined;
    try {
      await this.engine.forgetDestroyed(stacks);
    } catch (error) {
      const reason = errorMessageOf(error);
      this.logger.info({ stacks: stacks.length, reason }, "failed to remove what tells of destroyed stacks");
    }
  }
}

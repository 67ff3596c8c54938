import { RetryableError } from "../../providers/errors";
import type { WorkContext } from "../../providers/provider";
import type { StackEngine, WorkOptions } from "../automation/engine";
import type { BackendOwnership } from "./ownership";

/** What works on the stacks of a backend that is the operator's. */
export type OwnedEngine = Pick<
  StackEngine,
  "up" | "preview" | "destroy" | "previewDestroy" | "listStacks" | "forgetDestroyed"
>;

/**
 * An engine whose operations on stacks begin only while the backend is the operator's. `listStacks` and `forgetDestroyed` do not
 * ask whose it is: the one reads, and the other removes what an operation has written.
 *
 * Operations throw, besides what the engine does, RetryableError `BackendForeign` and `BackendUnknown`.
 */
export function ownedEngine(engine: OwnedEngine, ownership: Pick<BackendOwnership, "id" | "examine">): OwnedEngine {
  const owned = async <T>(work: (owner: string) => Promise<T>): Promise<T> => {
    try {
      return await work(await ownership.id());
    } catch (error) {
      if (!(error instanceof RetryableError && error.reason === "BackendForeign")) throw error;
      await ownership.examine();
      return work(await ownership.id());
    }
  };
  return withOptions(engine, (work) => owned((owner) => work({ owner })));
}

/** The engine for one piece of work, under its fence. */
export function engineWithin(engine: OwnedEngine, context: WorkContext): OwnedEngine {
  return withOptions(engine, (work) => work({ context }));
}

/** An engine whose operations are given these options as well. */
function withOptions(
  engine: OwnedEngine,
  given: <T>(work: (options: WorkOptions) => Promise<T>) => Promise<T>,
): OwnedEngine {
  return {
    up: (stack, program, options) => given((more) => engine.up(stack, program, { ...options, ...more })),
    preview: (stack, program, options) => given((more) => engine.preview(stack, program, { ...options, ...more })),
    destroy: (stack, options) => given((more) => engine.destroy(stack, { ...options, ...more })),
    previewDestroy: (stack, options) => given((more) => engine.previewDestroy(stack, { ...options, ...more })),
    listStacks: (signal) => engine.listStacks(signal),
    forgetDestroyed: (stacks) => engine.forgetDestroyed(stacks),
  };
}

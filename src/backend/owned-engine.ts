import { RetryableError } from "../../providers/errors";
import type { StackEngine } from "../automation/engine";
import type { BackendOwnership } from "./ownership";

/** What works on the stacks of a backend that is the operator's. */
export type OwnedEngine = Pick<
  StackEngine,
  "up" | "preview" | "destroy" | "previewDestroy" | "exportStack" | "removeStack" | "listStacks" | "forgetDestroyed"
>;

/**
 * An engine whose operations begin only while the backend is the operator's.
 *
 * All throw, besides what the engine does, RetryableError `BackendForeign` and `BackendUnknown`.
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
  return {
    up: (stack, program, options) => owned((owner) => engine.up(stack, program, { ...options, owner })),
    preview: (stack, program, options) => owned((owner) => engine.preview(stack, program, { ...options, owner })),
    destroy: (stack, options) => owned((owner) => engine.destroy(stack, { ...options, owner })),
    previewDestroy: (stack, options) => owned((owner) => engine.previewDestroy(stack, { ...options, owner })),
    exportStack: (stack, signal) => engine.exportStack(stack, signal),
    removeStack: (stack, options) => owned((owner) => engine.removeStack(stack, { ...options, owner })),
    listStacks: (signal) => engine.listStacks(signal),
    forgetDestroyed: (stacks) => engine.forgetDestroyed(stacks),
  };
}

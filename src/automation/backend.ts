import type { StackState } from "./stack-state";

/** The Pulumi project that all of Kindstack's stacks belong to. */
export const PROJECT = "kindstack";
/** Updates that are kept in a stack's history. Each holds the whole state, and the CLI never removes one. */
export const HISTORY_LIMIT = 20;

export type OnState = (name: string, state: StackState) => Promise<void>;

/** Where commands find a stack that is only looked at. */
export interface ReadableStack {
  /** The workspace's own without. */
  backendUrl?: string;
  /** The `.pulumi` of that backend, when it is a directory. */
  directory?: string;
}

/**
 * What is done to the stacks in a backend beside updates: directly where the backend can be read and written, as that
 * takes no process and needs fewer rights; else by commands.
 *
 * Everything throws RetryableError `Unreadable` when the backend cannot be reached.
 */
export interface Backend {
  /** Whether states are read and stacks removed without a command. */
  readonly isDirect: boolean;
  /** Makes an empty stack where there is none. Without it, only a command could, which an update tells to be needed. */
  createMissing?(stack: string): Promise<void>;
  /** A stack's state; `undefined` when there is no such stack. */
  state(stack: string, signal?: AbortSignal): Promise<StackState | undefined>;
  names(signal?: AbortSignal): Promise<string[]>;
  /** Reads every stack's state, all of one moment. */
  readAll?(onState: OnState): Promise<void>;
  /** Removes a stack's state, history and locks. A stack that does not exist is a success. */
  remove(stack: string, signal?: AbortSignal): Promise<void>;
  /** Removes all but the newest entries of a stack's history. */
  cutHistory?(stack: string): Promise<void>;
  /**
   * Takes out of the state what an update that was cut off was about to create. The engine would keep that there, and
   * warn of it, until a person looks at it; here the next creation does, as it adopts what is there. For a stack without a
   * running update.
   */
  forgetPendingCreates(stack: string): Promise<void>;
  /** Removes what is no whole lock of a stack. @returns what was removed */
  removeTornLocks?(stack: string): Promise<string[]>;
  /** Removes the locks of a dead process with `cancel`, and with them what its update was about to create. */
  unlock(stack: string, cancel: () => Promise<unknown>): Promise<void>;
  /**
   * Lets `read` look at a stack: at its checkpoint alone, or at its history as well. Where the backend shows without a
   * command that the stack does not exist, `read` is not called and the answer is `undefined`.
   */
  look<T>(
    stack: string,
    what: "checkpoint" | "history",
    read: (stack: ReadableStack) => Promise<T>,
  ): Promise<T | undefined>;
}

/**
 * Where a self-managed backend keeps a stack, and all of them, as the CLI does (`version: 1`).
 *
 * @param root its `.pulumi`
 */
export function stackPaths(root: string, stack = "") {
  const stacks = `${root}/stacks/${PROJECT}`;
  return {
    stacks,
    checkpoint: `${stacks}/${stack}.json`,
    history: `${root}/history/${PROJECT}/${stack}`,
    locks: `${root}/locks/organization/${PROJECT}/${stack}`,
    backups: `${root}/backups/${PROJECT}/${stack}`,
  };
}

/** Reads every stack's state, one by one: each is of a moment of its own. */
export async function readEach(
  backend: Pick<Backend, "names" | "state">,
  onState: OnState,
  signal?: AbortSignal,
): Promise<void> {
  for (const name of (await backend.names(signal)).sort()) {
    const state = await backend.state(name, signal);
    if (state !== undefined) await onState(name, state); // its object may be deleted just now
  }
}

import { LRUCache } from "lru-cache";
import pLimit from "p-limit";
import type { LiveObject } from "../../providers/kubernetes/client";
import type { AnyKind } from "../../stacks/contract/kind";
import { objectKey, stackName } from "../../stacks/contract/object";
import type { HistoryEntry, StackEngine } from "../automation/engine";
import type { StackState } from "../automation/stack-state";
import type { EventRecorder } from "../controller/event-recorder";
import type { Manager } from "../operator/manager";

export interface ConsoleOptions {
  kinds: readonly AnyKind[];
  /** The API server. */
  server: string;
  operator: Pick<Manager, "objects" | "object" | "view" | "plan">;
  recorder: Pick<EventRecorder, "reported">;
  engine: Pick<StackEngine, "exportStack" | "history">;
}

/** What the console shows: the operator's caches, and the state's backend where one object is looked at. */
export interface ConsoleSource extends Omit<ConsoleOptions, "engine"> {
  stack(kind: AnyKind, object: LiveObject): Promise<StackContents>;
}

export interface StackContents {
  name: string;
  /** `undefined` when there is no such stack. */
  state: StackState | undefined;
  history: HistoryEntry[];
}

const STACKS = 100;
/** `pulumi up` changes a stack without a change of the object. */
const STACK_LIFETIME_MS = 30_000;

/** Reads a stack when its object is shown and has changed since the last read, one stack at a time. */
export function consoleSource({ engine, ...caches }: ConsoleOptions): ConsoleSource {
  const oneAtATime = pLimit(1);
  const stacks = new LRUCache<string, StackContents, string>({
    max: STACKS,
    ttl: STACK_LIFETIME_MS,
    fetchMethod: (_version, _stale, { context: name }) =>
      oneAtATime(async () => ({
        name,
        state: await engine.exportStack(name),
        history: (await engine.history(name)) ?? [],
      })),
  });
  return {
    ...caches,
    stack(kind, object) {
      const name = stackName(kind, objectKey(object.metadata));
      return stacks.forceFetch(`${name} ${object.metadata.resourceVersion}`, { context: name });
    },
  };
}

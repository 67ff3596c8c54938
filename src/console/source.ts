import { LRUCache } from "lru-cache";
import type { LiveObject } from "../../providers/kubernetes/client";
import type { AnyKind } from "../../stacks/contract/kind";
import { objectKey } from "../../stacks/contract/object";
import { stackOf } from "../../stacks/contract/shared-stack";
import type { HistoryEntry, StackReader, StackState } from "../automation/stack-reader";
import type { EventRecorder, RecordedEvent } from "../controller/event-recorder";
import type { Manager } from "../operator/manager";

/** What the console shows: the operator's caches, and the state's backend where one object is looked at. */
export interface ConsoleSource {
  kinds: readonly AnyKind[];
  /** The API server. */
  server: string;
  list(kind: AnyKind): LiveObject[];
  get(kind: AnyKind, key: string): LiveObject | undefined;
  /** What the caches show of something that a stack made, by its id (`objectId`); `undefined` for a type that is not watched. */
  view(id: string): { object: LiveObject | undefined } | undefined;
  /** What this operator has reported of an object, the newest first. */
  events(object: LiveObject): RecordedEvent[];
  /** An object's stack as its backend has it. */
  stack(kind: AnyKind, object: LiveObject): Promise<StackContents>;
}

export interface StackContents {
  name: string;
  /** `undefined` when there is no such stack. */
  state: StackState | undefined;
  history: HistoryEntry[];
}

const STACKS = 100;
/** A stack that others share changes without a change of the object. */
const STACK_LIFETIME_MS = 30_000;

export interface ConsoleOptions {
  kinds: readonly AnyKind[];
  server: string;
  operator: Pick<Manager, "objects" | "object" | "view">;
  recorder: Pick<EventRecorder, "reported">;
  reader: Pick<StackReader, "state" | "history">;
}

/** A stack is read when its object is looked at and has changed since, one stack at a time. */
export function consoleSource({ kinds, server, operator, recorder, reader }: ConsoleOptions): ConsoleSource {
  let last: Promise<unknown> = Promise.resolve();
  const read = (name: string) => {
    const contents = last.then(async () => ({
      name,
      state: await reader.state(name),
      history: (await reader.history(name)) ?? [],
    }));
    last = contents.catch(() => {});
    return contents;
  };
  const stacks = new LRUCache<string, StackContents, string>({
    max: STACKS,
    ttl: STACK_LIFETIME_MS,
    fetchMethod: (_version, _stale, { context: name }) => read(name),
  });
  return {
    kinds,
    server,
    list: (kind) => operator.objects(kind),
    get: (kind, key) => operator.object(kind, key),
    view: (id) => operator.view(id),
    events: (object) => recorder.reported(object.metadata.uid),
    stack(kind, object) {
      const name = stackOf(kind, objectKey(object.metadata), object);
      return stacks.forceFetch(`${name} ${object.metadata.resourceVersion}`, { context: name });
    },
  };
}

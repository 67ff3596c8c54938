import type { ErrorData } from "../../providers/error-data";
import type { Log } from "../../providers/log";
import type { UpdatedObject } from "../../providers/provider";

/*
 * What the operator and the process of a package say to each other, over the channel of `child_process.fork`. The
 * messages of one turn of the event loop are sent as one list.
 */

/** Where a function of a kind is: the names that lead to it from the definition. */
export type FunctionPath = readonly (string | number)[];

/** What is called. Kinds are named as {@link kindName} does. */
export type Target =
  | { type: "describe" }
  | { type: "function"; kind: string; path: FunctionPath }
  | { type: "program"; kind: string }
  | { type: "sdkProgram"; kind: string }
  | { type: "maintain"; kind: string }
  | { type: "removeUntracked"; kind: string }
  | { type: "output"; kind: string; field: string }
  | { type: "provider"; stub: string; method: string };

/** What the calls of one update, or of other work for an object, have in common. */
export interface SessionData {
  id: number;
  object?: UpdatedObject | undefined;
  /** Whether reads are remembered, see {@link ProviderContext.snapshot}. */
  remembers: boolean;
}

/** See {@link Hold}. */
export interface HoldData {
  urn: string;
  call: "Create" | "Update" | "Delete";
  observation: string | undefined;
}

export type ToPackage =
  | { type: "call"; id: number; target: Target; args: unknown[]; session?: SessionData; hold?: HoldData }
  | { type: "abort"; id: number; error: ErrorData }
  | { type: "endSession"; id: number; error: ErrorData }
  | { type: "answer"; id: number; value?: unknown; error?: ErrorData }
  /** Sessions may write for so long from now; without any, for ever. */
  | { type: "allow"; ms: number }
  | { type: "ping"; id: number };

export type FromPackage =
  | { type: "answer"; id: number; value?: unknown; error?: ErrorData }
  /** What a call needs of the operator, such as an apply. */
  | { type: "ask"; id: number; call: number; method: string; args: unknown[] }
  | { type: "log"; call?: number | undefined; level: keyof Log; message: string; fields?: object | undefined }
  /** See {@link WorkContext.progress}. */
  | { type: "progress"; call: number; message: string }
  /** An error that nothing awaits, of a call or of what it has left behind. */
  | { type: "unhandled"; call: number; error: ErrorData }
  | { type: "pong"; id: number }
  /** The modules of the package have been evaluated, or have failed. */
  | { type: "loaded" };

/** The title of the process of a package, which names the call whose code runs at the moment. */
export function titleOf(call?: number): string {
  return call === undefined ? TITLE : `${TITLE} ${call}`;
}

/** The call that the arguments of a process name, as the system shows them. */
export function titledCall(commandLine: string): number | undefined {
  const found = new RegExp(`^${TITLE} (\\d+)\0*$`).exec(commandLine)?.[1];
  return found === undefined ? undefined : Number(found);
}

const TITLE = "kindstack packages/child.js";

/** Sends the messages of one turn of the event loop as one list. */
export function batching<Message>(send: (messages: Message[]) => void): (message: Message) => void {
  let waiting: Message[] = [];
  return (message) => {
    if (waiting.push(message) > 1) return;
    queueMicrotask(() => {
      const messages = waiting;
      waiting = [];
      send(messages);
    });
  };
}

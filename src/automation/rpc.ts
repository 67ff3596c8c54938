import type { EngineEvent } from "@pulumi/pulumi/automation/events";
import Type from "typebox";
import { Compile } from "typebox/compile";
import { ClassifiedError, errorMessageOf, initializationOf } from "../../providers/errors";
import type { ProviderRequest } from "../../providers/host/session";
import { parseJson } from "../text/json";

export class RpcError extends Error {
  constructor(
    message: string,
    /** What failed, for a program; undefined where only people need to know. */
    readonly kind: string | undefined,
  ) {
    super(message);
  }
}

const messageSchema = Compile(
  Type.Object({
    id: Type.Optional(Type.Number()),
    method: Type.Optional(Type.String()),
    params: Type.Optional(Type.Unknown()),
    result: Type.Optional(Type.Unknown()),
    error: Type.Optional(Type.Object({ kind: Type.Optional(Type.String()), message: Type.String() })),
  }),
);

interface Handlers {
  request(method: string, params: unknown): Promise<unknown>;
  notification(method: string, params: unknown): void;
}

/** JSON-RPC 2.0 in both directions, one JSON value a line, without the version field; `tools/engine/rpc` is the other end. */
export class Connection {
  readonly #calls = new Map<number, PromiseWithResolvers<unknown>>();
  #lastId = 0;
  #ended: Error | undefined;

  constructor(
    private readonly send: (line: string) => void,
    private readonly handlers: Handlers,
  ) {}

  /** @throws RpcError; what {@link end} is given */
  call(method: string, params: object): { id: number; result: Promise<unknown> } {
    const id = ++this.#lastId;
    const call = Promise.withResolvers<unknown>();
    if (this.#ended === undefined) this.#calls.set(id, call);
    else call.reject(this.#ended);
    this.#write({ id, method, params });
    return { id, result: call.promise };
  }

  notify(method: string, params: object): void {
    this.#write({ method, params });
  }

  /** @returns whether the line is a message */
  receive(line: string): boolean {
    const message = parseJson(messageSchema, line);
    if (message === undefined) return false;
    const { id, method, params, result, error } = message;
    if (method === undefined) {
      if (id === undefined) return false;
      const call = this.#calls.get(id);
      this.#calls.delete(id);
      if (error === undefined) call?.resolve(result);
      else call?.reject(new RpcError(error.message, error.kind));
    } else if (id === undefined) this.handlers.notification(method, params);
    else void this.#answer(id, method, params);
    return true;
  }

  /** Fails what waits for an answer, and what is called from now on. */
  end(error: Error): void {
    this.#ended = error;
    for (const { reject } of this.#calls.values()) reject(error);
    this.#calls.clear();
  }

  async #answer(id: number, method: string, params: unknown): Promise<void> {
    const refuse = (error: unknown, data?: object) => {
      const kind = error instanceof ClassifiedError ? error.errorClass : undefined;
      this.#write({ id, error: { ...(kind && { kind }), message: errorMessageOf(error), data } });
    };
    try {
      this.#write({ id, result: await this.handlers.request(method, params) });
    } catch (error) {
      try {
        refuse(error, initializationOf(error));
      } catch (unwritable) {
        refuse(unwritable); // a package's provider may have made what JSON does not have
      }
    }
  }

  #write(message: object): void {
    this.send(`${JSON.stringify(message)}\n`);
  }
}

/** What the engine's process of this version says. It is raised with {@link PROTOCOL} of `tools/engine`. */
export const PROTOCOL = 5;

const usage = Type.Object({ memoryBytes: Type.Number(), descriptors: Type.Number() });
export type EngineUsage = Type.Static<typeof usage>;

const request = Type.Unsafe<ProviderRequest>({ type: "object", required: ["urn"] });
const event = Type.Unsafe<EngineEvent>({ type: "object" });
export const messages = {
  usage: Compile(usage),
  hello: Compile(Type.Object({ version: Type.String(), protocol: Type.Number() })),
  providerCall: Compile(Type.Object({ id: Type.Number(), request })),
  operation: Compile(Type.Object({ id: Type.Number() })),
  event: Compile(Type.Object({ id: Type.Number(), event })),
  log: Compile(Type.Object({ message: Type.String(), facts: Type.Object({}) })),
  stack: Compile(Type.Object({ id: Type.Number(), name: Type.String(), state: Type.Unknown() })),
};

/** The argument of a process that may run until then, by `performance.now()`; none for one that may run for ever. */
export function ttlArguments(until: number | undefined): string[] {
  return until === undefined ? [] : [`--ttl-ms=${wholeMs(until - performance.now())}`];
}

/** To the engine, no time left would mean for ever. */
export function wholeMs(ms: number): number {
  return Math.max(1, Math.ceil(ms));
}

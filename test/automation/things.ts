import type { Input } from "@pulumi/pulumi/output";
import { DynamicResource } from "../../providers/dynamic";
import { PendingError, RetryableError, TerminalError } from "../../providers/errors";
import type { DynamicProvider, ProviderContext } from "../../providers/provider";
import type { DynamicResourceOptions } from "../../providers/resource-options";
import { served } from "../../providers/served";

export interface ThingInputs {
  key: string;
  value: string;
}

type Inputs<T> = { [Property in keyof T]: Input<T[Property]> };

export const THING_STUB = "a stub that the host knows";

/** Values that no thing takes, each with an error of another class. */
const REFUSED: Record<string, () => Error> = {
  terminal: () => new TerminalError("TableNotAllowed", "that table is not allowed"),
  retryable: () => new RetryableError("LockTimeout", "come again later"),
  bug: () => new TypeError("cannot read properties of undefined"),
  // What a database says of a table that a user has named so.
  "no stack": () => new RetryableError("TableMissing", 'relation "no stack named x found" does not exist'),
  lock: () =>
    new RetryableError(
      "TableMissing",
      'relation "error: the stack is currently locked by 1 lock(s): created by x@y (pid 1) at z" does not exist',
    ),
};

/** A resource of the simplest kind: a value under a key. */
export class Thing extends DynamicResource {
  constructor(name: string, inputs: Inputs<ThingInputs>, options?: DynamicResourceOptions) {
    super({ module: "test", name: "Thing", stub: THING_STUB }, name, { ...inputs }, options);
  }
}

/** The outer world of a test that is about the engine: what things there are, and what was asked of it. */
export class Things implements DynamicProvider<ThingInputs, ThingInputs> {
  readonly live = new Map<string, string>();
  /** The keys of all calls of create, in order. */
  readonly creations: string[] = [];
  /** What the last call of create was told. */
  lastContext: ProviderContext | undefined;
  /** Called by each call of create. */
  onWrite: () => void = () => {};
  #gate: { entered: () => void; left: Promise<void> } | undefined;

  /** Holds the next write of the value `slow` until it is released; `entered` tells when it is there. */
  holdSlow(): { entered: Promise<void>; release: () => void } {
    const [entered, left] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    this.#gate = { entered: entered.resolve, left: left.promise };
    return { entered: entered.promise, release: left.resolve };
  }

  async check(_olds: object, news: object) {
    return { inputs: { ...news }, failures: [] };
  }

  async diff(_id: string, olds: ThingInputs, news: ThingInputs) {
    if (olds.key !== news.key) return { changes: true, replaces: ["key"] };
    if (news.value === "afresh" && olds.value !== "afresh") {
      return { changes: true, replaces: ["value"], deleteBeforeReplace: true };
    }
    return { changes: olds.value !== news.value };
  }

  async create(inputs: ThingInputs, context?: ProviderContext) {
    this.creations.push(inputs.key);
    this.lastContext = context;
    this.onWrite();
    await this.#write(inputs);
    return { id: inputs.key, outs: { ...inputs } };
  }

  async read(id: string, outs: ThingInputs, _context?: ProviderContext) {
    const value = this.live.get(id);
    return value === undefined ? {} : { id, props: { ...outs, value } };
  }

  async update(_id: string, _olds: ThingInputs, news: ThingInputs) {
    await this.#write(news);
    return { outs: { ...news } };
  }

  async delete(id: string) {
    const value = this.live.get(id);
    if (value === "ending") throw new PendingError("Terminating", `${id} is being deleted`);
    if (value === "in use") throw new RetryableError("Terminating", `${id} is in use`);
    const refusal = REFUSED[value ?? ""];
    if (refusal !== undefined) throw refusal();
    this.live.delete(id);
  }

  readonly released: string[] = [];

  async release(id: string) {
    this.released.push(id);
  }

  async #write({ key, value }: ThingInputs): Promise<void> {
    const refusal = REFUSED[value];
    if (refusal !== undefined) throw refusal();
    if (value === "slow" && this.#gate !== undefined) {
      const { entered, left } = this.#gate;
      this.#gate = undefined;
      entered();
      await left;
    }
    this.live.set(key, value);
    if (value === "half") {
      const made = { id: key, outs: { key, value } };
      throw new RetryableError("LockTimeout", "only half of it was made", { made });
    }
  }
}

/** Things as a defined provider serves them, which records what a call has made that fails. */
export function recorded(things: Things): DynamicProvider<ThingInputs, ThingInputs> {
  const provider: DynamicProvider<ThingInputs, ThingInputs> = {
    check: (olds, news) => things.check(olds, news),
    diff: (id, olds, news) => things.diff(id, olds, news),
    create: (inputs, context) => things.create(inputs, context),
    read: (id, outs, context) => things.read(id, outs, context),
    update: (id, olds, news) => things.update(id, olds, news),
    delete: (id) => things.delete(id),
    release: (id) => things.release(id),
  };
  return served(provider);
}

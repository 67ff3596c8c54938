import { AsyncLocalStorage } from "node:async_hooks";
import { getAllResources, isSecret, Output, output } from "@pulumi/pulumi/output";
import type { Resource } from "@pulumi/pulumi/resource";
import * as state from "@pulumi/pulumi/runtime/state";
import { invalidProgram } from "./errors";
import { isWrapped, sealed } from "./literal";
import type { Log } from "./log";
import type { EngineOptions, PlainOptions } from "./resource-options";

/** A resource as the engine registers it. Others are named by their index in the program. */
export interface DeclaredResource {
  type: string;
  name: string;
  inputs?: object;
  parent?: number;
  dependsOn?: number[];
  options?: EngineOptions;
  /** By the index of an alias, the resource that was the parent then. */
  aliasParents?: Record<string, number>;
}

/** The engine ended before it knew of a resource; it has told why. */
export class NotRegisteredError extends Error {}

/**
 * Collects what a program declares.
 *
 * The SDK's resources ask the engine for each, with promises and stack traces for each property: two thirds of the CPU time
 * that an update of many rows took. And an error of theirs is an unhandled rejection, which fails all updates of the process.
 */
export class Registrations {
  readonly #declared: Promise<DeclaredResource>[] = [];

  /** @param store what the SDK keeps of the program */
  constructor(readonly store: object) {}

  register(declaration: Declaration): Resource {
    const declared = this.#declare(declaration);
    declared.catch(() => undefined); // `settled` tells
    return registered(declaration.name, this, this.#declared.push(declared) - 1);
  }

  /** All that was declared, once it is known. @throws TerminalError `InvalidProgram` */
  async settled(): Promise<DeclaredResource[]> {
    await Promise.allSettled(this.#declared);
    return Promise.all(this.#declared);
  }

  async #declare({ type, name, inputs, parent, options }: Declaration): Promise<DeclaredResource> {
    const { dependsOn = [], engine, aliasParents } = options ?? {};
    const others = dependsOn.map((resource) => this.#indexOf(name, resource));
    const parents = Object.entries(aliasParents ?? {}).map(([alias, was]) => [alias, this.#indexOf(name, was)]);
    return {
      type,
      name,
      ...(parent !== undefined && { parent: this.#indexOf(name, parent) }),
      ...(others.length > 0 && { dependsOn: others }),
      ...(engine !== undefined && { options: engine }),
      ...(parents.length > 0 && { aliasParents: Object.fromEntries(parents) }),
      ...(inputs !== undefined && { inputs: isWrapped(inputs) ? ((await unwrap(name, inputs)) as object) : inputs }),
    };
  }

  #indexOf(name: string, resource: Resource): number {
    const { [REGISTERED]: place } = resource as Partial<Registered>;
    if (place?.registrations === this) return place.index;
    throw invalidProgram(
      `${JSON.stringify(name)} refers to a resource that another update or the SDK registered: ${PLAIN}`,
    );
  }
}

/** Runs a program, and collects its resources. @throws what the program throws, TerminalError `InvalidProgram` */
export async function declaredBy(program: () => void | Promise<void>): Promise<DeclaredResource[]> {
  const store = withoutSdkResources();
  const registrations = new Registrations(store);
  const inStore = () => globalThis.asyncLocalStorage.run(store, program);
  await running.run({ log: runningProgram().log, registrations }, inStore);
  return registrations.settled();
}

const { getStore } = state as unknown as { getStore(): object };

/** What the SDK keeps of a program. It would take a resource without an engine for one that it need not register, and say nothing. */
function withoutSdkResources(): object {
  return new Proxy(getStore(), {
    get(target, property) {
      if (property !== "stackResource") return Reflect.get(target, property);
      throw invalidProgram(`the program makes a resource of the SDK, a plugin or a component: ${PLAIN}`); // it asks for its parent
    },
  });
}

const PLAIN =
  "programs of kinds give their resources plain values, and say with dependsOn what has to be there before; " +
  "for outputs and plugins declare capabilities: { sdkRuntime: true }";

const REGISTERED = Symbol("where a resource was registered");

interface Registered extends Resource {
  [REGISTERED]: { registrations: Registrations; index: number };
}

/** What a program has in its hands: something to depend on, without outputs. */
function registered(name: string, registrations: Registrations, index: number): Resource {
  return new Proxy({ [REGISTERED]: { registrations, index } } as Registered, {
    get(target, property) {
      // `then`: a promise asks each value for it.
      if (typeof property === "symbol" || ["constructor", "then"].includes(property))
        return Reflect.get(target, property);
      throw invalidProgram(
        `the program reads the output ${JSON.stringify(property)} of ${JSON.stringify(name)}: ${PLAIN}`,
      );
    },
  });
}

/**
 * Inputs for the engine, with secrets as it takes them.
 *
 * @throws TerminalError for outputs of resources, on which the resource would depend
 */
async function unwrap(name: string, value: unknown): Promise<unknown> {
  if (Output.isInstance(value) || value instanceof Promise) {
    const wrapped = output(value);
    if ((await getAllResources(wrapped)).size > 0) {
      throw invalidProgram(`the inputs of ${JSON.stringify(name)} are a resource's outputs: ${PLAIN}`);
    }
    const plain = await new Promise((resolve) => void wrapped.apply(resolve));
    return (await isSecret(wrapped)) ? sealed(plain) : plain;
  }
  if (Array.isArray(value)) return Promise.all(value.map((item) => unwrap(name, item)));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(async ([key, item]) => [key, await unwrap(name, item)] as const);
  return Object.fromEntries(await Promise.all(entries));
}

/** What a program says of one resource. */
interface Declaration {
  /** Pulumi's type token. */
  type: string;
  name: string;
  /** A component has none. */
  inputs?: object;
  /** The stack, if there is none. */
  parent?: Resource | undefined;
  options?: PlainOptions;
}

/** What a program runs in. Each is absent where nothing has set it, as in a plain `pulumi up`. */
interface RunningProgram {
  /** Where its resources are registered; otherwise the SDK does that. */
  registrations?: { register(declaration: Declaration): Resource; readonly store: object };
  /** What it may declare: objects of the types that its kind owns, each once. */
  objects?: {
    kind: string;
    owns: readonly { apiVersion: string; kind: string }[];
    /** The names of resources so far, by the object that each describes. */
    names: Map<string, string>;
  };
  /**
   * The parent of all resources that name none. In a stack that several objects share, it keeps their resources apart: names need
   * to be unique only below one parent.
   */
  parent?: Resource;
  /** What it prints by `console` is written here; the same for the call of a provider. */
  log?: Log | undefined;
}

/**
 * Pulumi's constructors force it to be implicit: `new KubernetesObject(name, inputs, options)` has no argument for what the
 * program runs in, and several programs run at the same time. `console.log` has none either.
 */
const running = new AsyncLocalStorage<RunningProgram>();

/** Runs a program in this, and in all else that the caller runs in. */
export function withProgram<T>(part: RunningProgram, program: () => T): T {
  return running.run({ ...runningProgram(), ...part }, program);
}

/**
 * What the program that calls this runs in.
 *
 * A program of the SDK's runtime may have come into the context of another one: a throw in `process.nextTick` leaves its context to all
 * sockets that Node.js accepts afterwards, and so to the calls of engines. The SDK's store tells the two apart.
 */
export function runningProgram(): RunningProgram {
  const program = running.getStore() ?? {};
  const { registrations, log } = program;
  const isOther = registrations !== undefined && registrations.store !== globalThis.asyncLocalStorage.getStore();
  return isOther ? { log } : program;
}

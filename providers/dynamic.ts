import type { Inputs } from "@pulumi/pulumi/output";
import { ComponentResource, CustomResource, type Resource } from "@pulumi/pulumi/resource";
import { ClassifiedError, invalidProgram, RetryableError, type TerminalError } from "./errors";
import { behindEngine, escapeReserved } from "./literal";
import { comparing } from "./observation";
import type { CallContext, DynamicProvider, Properties } from "./provider";
import { runningProgram, withProgram } from "./registration";
import {
  type DynamicResourceOptions,
  plainOptions,
  RETAINED,
  refuseForeignOptions,
  retaining,
} from "./resource-options";
import { GUARD_TYPE } from "./urn";

/** The property under which Pulumi keeps a dynamic provider's code in the state. */
export const PROVIDER_PROPERTY = "__provider";

/** Whether a property is Pulumi's or ours, and no one's to read. */
export function isInternal(property: string): boolean {
  return property.startsWith("__");
}

/** Properties without those that are {@link isInternal}. */
export function withoutInternal(properties: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(properties).filter(([name]) => !isInternal(name)));
}

/** A provider as hosts serve it, and the code that the state records to find it. */
// biome-ignore lint/suspicious/noExplicitAny: each provider knows the type of its own properties
export interface DefinedProvider<I extends object = any, O extends object = any> {
  readonly stub: string;
  readonly provider: DynamicProvider<I, O>;
  /**
   * A number that grows when the provider makes something else of the same inputs: then objects are updated whose programs declare
   * what they declared before. Without it, each change of the kind's code counts as one of the provider.
   */
  readonly version?: number;
}

/**
 * Defines a dynamic provider. Its module exports what this returns: `export const { stub, provider } = …`.
 *
 * @param specifier what `require` in the Pulumi project's directory finds the module by, such as `@acme/kinds/schema`; the
 *   state records it, so it must not change while there are resources
 */
export function defineProvider<I extends object, O extends object>(
  specifier: string,
  provider: DynamicProvider<I, O>,
): DefinedProvider<I, O> {
  // Serializing the provider itself would capture its closures in every resource's state and run last year's code on
  // delete. `createRequire` looks from the project's directory, so that it finds Kindstack as the project itself (its
  // own `exports`) as well as in `node_modules`.
  const stub = `exports.handler = () => require("module").createRequire(process.cwd() + "/")(${JSON.stringify(specifier)}).provider;`;
  const served = behindEngine(movingRenamed(retaining(comparing(provider))));
  return { stub, provider: recordingIncomplete(served, [PROVIDER_PROPERTY]) };
}

/** Runs a program so that this is the parent of all resources that name none. */
export function withParent<T>(parent: Resource, program: () => T): T {
  return withProgram({ parent }, program);
}

/**
 * The same for a program of the SDK's own resources, where the SDK runs it: there the parent of what names no parent is the
 * stack.
 */
export function withSdkParent<T>(parent: Resource, program: () => T): T {
  const store = globalThis.asyncLocalStorage.getStore() ?? globalThis.globalStore;
  const below = new Proxy(store, {
    get: (target, property) => (property === "stackResource" ? parent : Reflect.get(target, property)),
  });
  return globalThis.asyncLocalStorage.run(below, program);
}

/** A component that groups the resources below it, see {@link withParent}. */
export function component(type: string, name: string): Resource {
  return runningProgram().registrations?.register({ type, name }) ?? new ComponentResource(type, name);
}

/** The base of all resources of dynamic providers; `stub` is what {@link defineProvider} returns. */
export abstract class DynamicResource extends CustomResource {
  /**
   * In an update of the operator's, what is made is not the SDK's resource but a registration, which takes a third of
   * the time; see {@link Registrations}.
   */
  // biome-ignore lint/correctness/noUnreachableSuper: a program says `new Row(…)` wherever it runs
  protected constructor(
    { module, name: typeName, stub }: { module: string; name: string; stub: string },
    name: string,
    inputs: Inputs,
    options: DynamicResourceOptions = {},
  ) {
    refuseForeignOptions(name, options);
    const { retainOnDelete, ...others } = options;
    const type = `pulumi-nodejs:dynamic/${module}:${typeName}`;
    if (type === GUARD_TYPE) throw guardRefused(name);
    const retained = retainOnDelete ? { [RETAINED]: true } : {};
    const all = { ...escapeReserved(inputs), ...retained, [PROVIDER_PROPERTY]: stub };
    const { registrations, parent: given } = runningProgram();
    const parent = options.parent ?? given;
    if (registrations !== undefined) {
      const plain = plainOptions(name, others);
      // biome-ignore lint/correctness/noConstructorReturn: see above
      return registrations.register({ type, name, inputs: all, parent, options: plain }) as DynamicResource;
    }
    super(type, name, all, parent === undefined ? others : { ...others, parent });
  }
}

/** The error about a resource whose type is the guard's. */
export function guardRefused(name: string): TerminalError {
  return invalidProgram(`the resource ${JSON.stringify(name)}: the type ${GUARD_TYPE} is Kindstack's own`);
}

/** What the resources of one update manage, by {@link DynamicProvider.identify}. */
interface Identities {
  /** By resources that are registered, and whether that is as they want it. */
  registered: Map<string, "wanted" | "made">;
  /** Those that a resource gives up to be made again, as itself. */
  remade: Set<string>;
}

/** By update: the operator runs many at the same time, and each has its own fence. */
const updates = new WeakMap<object, Identities>();
/** In a plain `pulumi up`, the SDK's script serves one update; `undefined` elsewhere. */
let scripted: object | undefined;

/** `undefined` for calls that belong to no update. */
function identities(context: CallContext): Identities | undefined {
  const update = context?.fence ?? scripted;
  if (update === undefined) return undefined;
  const known = updates.get(update) ?? { registered: new Map(), remade: new Set() };
  updates.set(update, known);
  return known;
}

/**
 * A provider whose deletions skip things that another resource of the same update manages: a resource that is renamed in a
 * program keeps its live object or row under the new name. The engine knows only names, so it creates the new resource, which
 * adopts the existing object, and deletes the old resource. Where the creation has failed, the old resource stays.
 */
export function movingRenamed<I extends object, O extends object>(
  provider: DynamicProvider<I, O>,
): DynamicProvider<I, O> {
  const { identify } = provider;
  if (identify === undefined) return provider;
  const prefix = `${nextProvider++} `;
  const identityOf = (properties: object) => {
    const identity = identify(properties as Partial<I>);
    return identity === undefined ? undefined : prefix + identity;
  };
  const note = (properties: object, state: "wanted" | "made", context: CallContext) => {
    const identity = identityOf(properties);
    if (identity !== undefined) identities(context)?.registered.set(identity, state);
  };
  return {
    ...provider,
    async configure() {
      scripted = {};
    },
    async check(olds, news, context) {
      note(news, "wanted", context);
      return provider.check(olds, news, context);
    },
    async diff(id, olds, news, context) {
      const result = await provider.diff(id, olds, news, context);
      const identity = identityOf(news);
      // A refresh compares as well, of what no program has registered yet.
      if (!result.changes && identities(context)?.registered.has(identity ?? "")) note(news, "made", context);
      else if (result.replaces?.length && identity !== undefined && identity === identityOf(olds)) {
        identities(context)?.remade.add(identity);
      }
      return result;
    },
    async create(inputs, context) {
      const created = await provider.create(inputs, context);
      note(inputs, "made", context);
      return created;
    },
    async update(id, olds, news, context) {
      const updated = await provider.update(id, olds, news, context);
      note(news, "made", context);
      return updated;
    },
    async delete(id, outs, context) {
      const identity = identityOf(outs);
      const all = identities(context);
      const update = identity === undefined || all?.remade.has(identity) ? undefined : all;
      const state = update?.registered.get(identity as string);
      if (state === undefined) return provider.delete(id, outs, context);
      if (state === "wanted") {
        throw new RetryableError("Moving", `${id} stays: the resource that is to take it over was not made or updated`);
      }
    },
  };
}

let nextProvider = 0;

/** The property of a resource whose `create` or `update` failed after it had made something. */
const INCOMPLETE = "__incomplete";

/**
 * A provider whose failed calls record what they have made, see {@link ErrorDetails.made}: by Pulumi's own initialization errors, which
 * are properties of what is thrown. A refresh would clear the engine's record of them, so the outputs have one as well.
 *
 * @param kept properties that the state needs besides the provider's own
 */
export function recordingIncomplete<I extends object, O extends object>(
  provider: DynamicProvider<I, O>,
  kept: readonly string[],
): DynamicProvider<I, O> {
  const recording = async <T>(call: Promise<T>, inputs: Properties): Promise<T> => {
    try {
      return await call;
    } catch (error) {
      if (error instanceof ClassifiedError && error.made !== undefined) {
        const given = [...kept, RETAINED].filter((name) => name in inputs).map((name) => [name, inputs[name]]);
        error.id = error.made.id;
        error.properties = { ...escapeReserved(error.made.outs), ...Object.fromEntries(given), [INCOMPLETE]: true };
        error.reasons = [error.message];
      }
      throw error;
    }
  };
  return {
    ...provider,
    async diff(id, olds, news, context) {
      const result = await provider.diff(id, olds, news, context);
      return INCOMPLETE in olds ? { ...result, changes: true } : result;
    },
    create: (inputs, context) => recording(provider.create(inputs, context), inputs as Properties),
    async read(id, outs, context) {
      const result = await provider.read(id, outs, context);
      if (result.id === undefined || !(INCOMPLETE in outs)) return result;
      return { ...result, props: { ...result.props, [INCOMPLETE]: true } };
    },
    update: (id, olds, news, context) => recording(provider.update(id, olds, news, context), news as Properties),
  };
}

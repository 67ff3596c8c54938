import type { Inputs } from "@pulumi/pulumi/output";
import { ComponentResource, CustomResource, type Resource } from "@pulumi/pulumi/resource";
import { invalidProgram, type TerminalError } from "./errors";
import { escapeReserved } from "./literal";
import type { DynamicProvider } from "./provider";
import { runningProgram, withProgram } from "./registration";
import {
  type DynamicResourceOptions,
  PROVIDER_PROPERTY,
  plainOptions,
  RETAINED,
  refuseForeignOptions,
} from "./resource-options";
import { served } from "./served";
import { GUARD_TYPE } from "./urn";

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
  return { stub, provider: served(provider) };
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

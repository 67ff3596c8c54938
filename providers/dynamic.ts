import { AsyncLocalStorage } from "node:async_hooks";
import type { Inputs } from "@pulumi/pulumi/output";
import { ComponentResource, CustomResource, type CustomResourceOptions, type Resource } from "@pulumi/pulumi/resource";
import { escapeInputs } from "./literal";
import { currentRegistrations } from "./registration";

/*
 * Pulumi is imported by submodule throughout: `@pulumi/pulumi` itself loads the closure serializer and the whole
 * Automation API, 60 MiB of resident memory that an operator never uses.
 */

/** The property under which Pulumi keeps a dynamic provider's code in the state. */
export const PROVIDER_PROPERTY = "__provider";

/**
 * The code that Pulumi stores with each resource: not the provider, but where to find it.
 *
 * Serializing the provider itself would capture its closures in every resource's state and run last year's code on
 * delete. `createRequire` looks from the project's directory, so that it finds Kindstack as the project itself (its
 * own `exports`) as well as in `node_modules`.
 */
export function providerStub(module: string): string {
  return `exports.handler = () => require("module").createRequire(process.cwd() + "/")("kindstack/providers/${module}").provider;`;
}

const parents = new AsyncLocalStorage<Resource>();

/**
 * Runs a program that knows nothing of parents so that all it registers has this one. In a stack that several objects
 * share, it keeps their resources apart: names need to be unique only below one parent.
 */
export function withParent<T>(parent: Resource, program: () => T): T {
  return parents.run(parent, program);
}

/** A component that groups the resources below it, see {@link withParent}. */
export function component(type: string, name: string): Resource {
  return currentRegistrations()?.register({ type, name }) ?? new ComponentResource(type, name);
}

/** What a program of a kind may say of a resource beside its inputs. */
const OPTIONS: readonly string[] = ["parent", "dependsOn"] satisfies (keyof CustomResourceOptions)[];

/** A resource whose provider is a {@link providerStub}; the base of every resource that Kindstack defines. */
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
    options: CustomResourceOptions = {},
  ) {
    const type = `pulumi-nodejs:dynamic/${module}:${typeName}`;
    const all = { ...escapeInputs(inputs), [PROVIDER_PROPERTY]: stub };
    const parent = options.parent ?? parents.getStore();
    const registrations = currentRegistrations();
    if (registrations !== undefined) {
      const dependsOn = plainDependencies(name, options);
      // biome-ignore lint/correctness/noConstructorReturn: see above
      return registrations.register({ type, name, inputs: all, parent, dependsOn }) as DynamicResource;
    }
    super(type, name, all, parent === undefined ? options : { ...options, parent });
  }
}

function plainDependencies(name: string, options: CustomResourceOptions): readonly Resource[] {
  const unknown = Object.keys(options).find((option) => !OPTIONS.includes(option));
  if (unknown !== undefined) {
    throw new TypeError(
      `the option ${unknown} of the resource ${JSON.stringify(name)}: known are ${OPTIONS.join(", ")}`,
    );
  }
  return [options.dependsOn ?? []].flat() as Resource[];
}

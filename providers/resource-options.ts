import type { Alias, CustomResourceOptions, Resource } from "@pulumi/pulumi/resource";
import { invalidProgram } from "./errors";
import type { Properties } from "./provider";

/** Pulumi's options of a resource, as far as a resource of a dynamic provider can have them. */
export type DynamicResourceOptions = Pick<
  CustomResourceOptions,
  | "parent"
  | "dependsOn"
  | "aliases"
  | "ignoreChanges"
  | "deleteBeforeReplace"
  | "protect"
  | "retainOnDelete"
  | "customTimeouts"
  | "additionalSecretOutputs"
>;

/** What the engine is told of a resource: fields of `pulumirpc.RegisterResourceRequest`, in its JSON form. */
export interface EngineOptions {
  aliases?: ({ urn: string } | { spec: AliasSpec })[];
  ignoreChanges?: readonly string[];
  deleteBeforeReplace?: boolean;
  deleteBeforeReplaceDefined?: true;
  protect?: boolean;
  customTimeouts?: object;
  additionalSecretOutputs?: readonly string[];
}

interface AliasSpec {
  name?: string;
  type?: string;
  parentUrn?: string;
  noParent?: true;
}

/** Options of a resource in a plain program, taken apart. */
export interface PlainOptions {
  dependsOn: readonly Resource[];
  engine?: EngineOptions;
  /** By the index of the alias, what was the parent then. */
  aliasParents?: Readonly<Record<number, Resource>>;
}

/** In no program: the provider, not the engine, decides. */
const PROVIDERS_OWN: Readonly<Record<string, string>> = {
  import: "leave it out: the provider's create adopts what exists",
  replaceOnChanges: "return such properties in `replaces` of the provider's diff",
};
const SDK_RUNTIME = "only programs in the SDK's runtime have it: declare capabilities: { sdkRuntime: true }";
const DURATION = /^(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+$/;

/**
 * Refuses options that no dynamic provider can obey.
 *
 * @throws TerminalError `InvalidProgram` naming the option and what to write instead
 */
export function refuseForeignOptions(name: string, options: CustomResourceOptions): void {
  for (const [option, instead] of Object.entries(PROVIDERS_OWN)) {
    if (options[option as keyof CustomResourceOptions] !== undefined) refuse(name, option, instead);
  }
  for (const [operation, duration] of Object.entries(options.customTimeouts ?? {})) {
    if (!DURATION.test(String(duration))) {
      refuse(name, `customTimeouts.${operation}`, `${JSON.stringify(duration)} must be a duration, such as 90s or 5m`);
    }
  }
}

/**
 * The options of a resource in a plain program, for the engine.
 *
 * @throws TerminalError `InvalidProgram` naming the option and what to declare instead
 */
export function plainOptions(name: string, options: Omit<DynamicResourceOptions, "retainOnDelete">): PlainOptions {
  const { parent: _, dependsOn = [], aliases, deleteBeforeReplace, ...others } = options;
  const { ignoreChanges, protect, customTimeouts, additionalSecretOutputs, ...foreign } = others;
  const [unknown] = Object.entries(foreign).filter(([, value]) => value !== undefined);
  if (unknown !== undefined) refuse(name, unknown[0], SDK_RUNTIME);
  const engine: EngineOptions = {
    ...(aliases !== undefined && { aliases: aliases.map((alias) => plainAlias(name, alias)) }),
    ...(ignoreChanges !== undefined && { ignoreChanges }),
    ...(deleteBeforeReplace !== undefined && { deleteBeforeReplace, deleteBeforeReplaceDefined: true }),
    ...(protect !== undefined && { protect }),
    ...(customTimeouts !== undefined && { customTimeouts }),
    ...(additionalSecretOutputs !== undefined && { additionalSecretOutputs }),
  };
  const aliasParents = Object.fromEntries(
    (aliases ?? []).flatMap((alias, index) => {
      const parent = typeof alias === "string" ? undefined : (alias as Alias).parent;
      return typeof parent === "object" ? [[index, parent as Resource]] : [];
    }),
  );
  return {
    dependsOn: [dependsOn].flat() as Resource[],
    ...(Object.keys(engine).length > 0 && { engine }),
    ...(Object.keys(aliasParents).length > 0 && { aliasParents }),
  };
}

function plainAlias(name: string, alias: unknown): { urn: string } | { spec: AliasSpec } {
  if (typeof alias === "string") return { urn: alias };
  const { name: former, type, parent, ...others } = alias as Alias;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) refuse(name, `aliases: ${unknown}`, "a plain program knows name, type and parent");
  for (const [field, value] of Object.entries({ name: former, type })) {
    if (value !== undefined && typeof value !== "string") refuse(name, `aliases: ${field}`, "must be a text");
  }
  return {
    spec: {
      ...(former !== undefined && { name: former as string }),
      ...(type !== undefined && { type: type as string }),
      ...(typeof parent === "string" && { parentUrn: parent }),
      ...("parent" in (alias as Alias) && parent === undefined && { noParent: true as const }),
    },
  };
}

function refuse(name: string, option: string, instead: string): never {
  throw invalidProgram(`the option ${option} of the resource ${JSON.stringify(name)}: ${instead}`);
}

/** The property under which Pulumi keeps a dynamic provider's code in the state. */
export const PROVIDER_PROPERTY = "__provider";

/** The property of resources with Pulumi's option `retainOnDelete`. */
export const RETAINED = "__retainOnDelete";

/** Whether a resource is released where it would be deleted. */
export function isRetained(properties: object): boolean {
  return (properties as Properties)[RETAINED] === true;
}

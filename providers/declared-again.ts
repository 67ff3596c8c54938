import { CustomResource, type CustomResourceOptions, type Resource } from "@pulumi/pulumi/resource";
import { component } from "./dynamic";
import type { DeclaredResource } from "./registration";
import { runningProgram } from "./registration";
import type { EngineOptions } from "./resource-options";

/** Registers in the program that runs here what another process has declared. */
export function declareAgain(resources: readonly DeclaredResource[]): void {
  const made: Resource[] = [];
  const at = (index: number): Resource => {
    const resource = made[index];
    if (resource === undefined) throw new TypeError(`a resource refers to one that is not declared before: ${index}`);
    return resource;
  };
  const { registrations, parent: given } = runningProgram();
  for (const { type, name, inputs, parent: index, dependsOn = [], options: engine, aliasParents = {} } of resources) {
    const parent = index === undefined ? given : at(index);
    const parents = Object.fromEntries(Object.entries(aliasParents).map(([alias, was]) => [alias, at(was)]));
    const others = dependsOn.map(at);
    if (registrations !== undefined) {
      const options = {
        dependsOn: others,
        ...(engine && { engine }),
        ...(Object.keys(parents).length > 0 && { aliasParents: parents }),
      };
      made.push(registrations.register({ type, name, ...(inputs && { inputs }), parent, options }));
    } else if (inputs === undefined) made.push(component(type, name));
    else {
      const options = { ...(parent && { parent }), dependsOn: others, ...(engine && sdkOptions(engine, parents)) };
      made.push(new Declared(type, name, inputs, options));
    }
  }
}

class Declared extends CustomResource {}

function sdkOptions(
  { aliases, deleteBeforeReplaceDefined: _, ...others }: EngineOptions,
  parents: Record<string, Resource>,
): CustomResourceOptions {
  const all = aliases?.map((alias, index) => {
    if ("urn" in alias) return alias.urn;
    const { parentUrn, noParent, ...spec } = alias.spec;
    const parent = parents[index] ?? parentUrn;
    return { ...spec, ...(parent !== undefined && { parent }), ...(noParent && { parent: undefined }) };
  });
  return { ...others, ...(all && { aliases: all }) } as CustomResourceOptions;
}

import type { DefinedProvider } from "./dynamic";
import { GUARD_STUB, guardInputs, provider as guardProvider } from "./guard";
import { OBJECT_STUB, provider as objectProvider } from "./kubernetes/object";
import { ROW_STUB, provider as rowProvider } from "./postgres/row";
import type { UpdatedObject } from "./provider";

const OWN: readonly DefinedProvider[] = [
  { stub: OBJECT_STUB, provider: objectProvider, version: 1 },
  { stub: ROW_STUB, provider: rowProvider, version: 1 },
];

const GUARD: DefinedProvider = { stub: GUARD_STUB, provider: guardProvider };

interface HasProviders {
  capabilities: { providers?: readonly DefinedProvider[] };
}

/** Kindstack's providers and those of kinds' own, by the stub that the state holds of each; what the host serves. */
export function providersOf(kinds: readonly HasProviders[] = []): ReadonlyMap<string, DefinedProvider["provider"]> {
  return new Map([...definedFor(kinds), GUARD].map(({ stub, provider }) => [stub, provider]));
}

/** The versions of a kind's providers, by stub; `undefined` for a provider that has none. */
export function providerVersions(kind: HasProviders): ReadonlyMap<string, number | undefined> {
  return new Map(definedFor([kind]).map(({ stub, version }) => [stub, version]));
}

function definedFor(kinds: readonly HasProviders[]): readonly DefinedProvider[] {
  return [...kinds.flatMap(({ capabilities }) => capabilities.providers ?? []), ...OWN];
}

/** The guard of an object's stack, and the stubs of the providers that do without it. */
export function guardOf(object: UpdatedObject): { inputs: object; refusing: string[] } {
  return { inputs: guardInputs(object), refusing: OWN.map(({ stub }) => stub) };
}

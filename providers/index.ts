import type { DefinedProvider } from "./dynamic";
import { OBJECT_STUB, provider as objectProvider } from "./kubernetes/object";
import { ROW_STUB, provider as rowProvider } from "./postgres/row";

const OWN: readonly DefinedProvider[] = [
  { stub: OBJECT_STUB, provider: objectProvider },
  { stub: ROW_STUB, provider: rowProvider },
];

/** Kindstack's providers and those of kinds' own, by the stub that the state holds of each; what the host serves. */
export function providersOf(
  kinds: readonly { capabilities: { providers?: readonly DefinedProvider[] } }[] = [],
): ReadonlyMap<string, DefinedProvider["provider"]> {
  const all = [...kinds.flatMap(({ capabilities }) => capabilities.providers ?? []), ...OWN];
  return new Map(all.map(({ stub, provider }) => [stub, provider]));
}

import type { DefinedProvider } from "./dynamic";
import { OBJECT_STUB, provider as objectProvider } from "./kubernetes/object";
import { ROW_STUB, provider as rowProvider } from "./postgres/row";

type Providers = ReadonlyMap<string, DefinedProvider["provider"]>;

/** Kindstack's providers by the stub that the state holds of each; what the host serves. */
export const providers: Providers = new Map<string, DefinedProvider["provider"]>([
  [OBJECT_STUB, objectProvider],
  [ROW_STUB, rowProvider],
]);

/** The same, and the providers of kinds' own. */
export function providersOf(kinds: readonly { capabilities: { providers?: readonly DefinedProvider[] } }[]): Providers {
  const own = kinds.flatMap(({ capabilities }) => capabilities.providers ?? []);
  return new Map([...own.map(({ stub, provider }) => [stub, provider] as const), ...providers]);
}

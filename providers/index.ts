import { OBJECT_STUB, provider as objectProvider } from "./kubernetes/object";
import { ROW_STUB, provider as rowProvider } from "./postgres/row";
import type { DynamicProvider } from "./provider";

/** Kindstack's providers by the stub that the state holds of each; what the host serves. */
// biome-ignore lint/suspicious/noExplicitAny: each provider knows the type of its own properties
export const providers: ReadonlyMap<string, DynamicProvider<any, any>> = new Map<string, DynamicProvider<any, any>>([
  [OBJECT_STUB, objectProvider],
  [ROW_STUB, rowProvider],
]);

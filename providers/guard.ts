import { defineProvider } from "./dynamic";
import { refusingManaged } from "./kubernetes/managed-owner";
import type { Owner } from "./kubernetes/ownership";
import type { DynamicProvider, UpdatedObject } from "./provider";
import { PROVIDER_PROPERTY } from "./resource-options";

interface Guarded {
  owner: Owner;
}

/**
 * The resource that Pulumi's CLI deletes before all others of a stack, where these do not know whether an operator manages them. It is in
 * the saved state alone: no program declares it (`tools/engine/state/guard.go`).
 */
const guards: DynamicProvider<Guarded, Guarded> = {
  check: async (_olds, news) => ({ inputs: news, failures: [] }),
  diff: async () => ({ changes: false }),
  create: async (inputs) => ({ id: "guard", outs: inputs }),
  read: async (id, outs) => ({ id, props: outs }),
  update: async (_id, _olds, news) => ({ outs: news }),
  delete: async () => {},
  release: async () => {},
};

export const { stub: GUARD_STUB, provider } = defineProvider("kindstack/providers/guard", refusingManaged(guards));

/** What the state has of the guard of an object's stack. */
export function guardInputs({ apiVersion, kind, namespace, name, uid }: UpdatedObject): object {
  const [group] = apiVersion.split("/");
  const description = [`${kind}.${group}`, namespace, name].filter(Boolean).join("/");
  return { owner: { uid, description }, [PROVIDER_PROPERTY]: GUARD_STUB };
}

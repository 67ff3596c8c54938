import { onTestFinished, vi } from "vitest";
import { KubernetesClient } from "../../../providers/kubernetes/client";
import { provider } from "../../../providers/kubernetes/object";
import type { ObjectInputs, ObjectOutputs } from "../../../providers/kubernetes/object-inputs";
import type { Manifest } from "../../../providers/kubernetes/types";
import type { ProviderContext } from "../../../providers/provider";
import { acme } from "../../objects";

/* The calls of the provider of objects, without what the engine alone needs. The owner is acme where a test names no other. */

type Options = Partial<Omit<ObjectInputs, "manifest">>;

export const create = async (
  manifest: Manifest,
  options: Options = {},
  context?: ProviderContext,
): Promise<ObjectOutputs> => (await provider.create({ manifest, owner: acme, ...options }, context)).outs;

export const update = async (
  outs: ObjectOutputs,
  manifest: Manifest,
  options: Options = {},
  context?: ProviderContext,
): Promise<ObjectOutputs> => (await provider.update("id", outs, { manifest, owner: acme, ...options }, context)).outs;

export const read = async (outs: ObjectOutputs): Promise<ObjectOutputs | undefined> =>
  (await provider.read("id", outs)).props;
export const remove = (outs: ObjectOutputs, context?: ProviderContext): Promise<void> =>
  provider.delete("id", outs, context);
export const release = (outs: ObjectOutputs): Promise<void> => provider.release("id", outs);

/** Another client acts between the provider's look and its next request of this kind. */
export function rightBefore(request: "apply" | "applyNew" | "delete", act: () => Promise<unknown>): void {
  const original = KubernetesClient.prototype[request] as (...given: unknown[]) => Promise<never>;
  const spy = vi.spyOn(KubernetesClient.prototype, request);
  spy.mockImplementationOnce(async function (this: KubernetesClient, ...given: unknown[]) {
    await act();
    return original.apply(this, given);
  });
  onTestFinished(() => spy.mockRestore());
}

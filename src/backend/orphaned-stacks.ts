import type { KubernetesClient } from "../../providers/kubernetes/client";
import { DEFINITION_TYPE, isInstalled } from "../../stacks/contract/crd";
import { objectKey, stackName } from "../../stacks/contract/object";
import type { StackEngine } from "../automation/engine";
import { urnsIn } from "../automation/stack-state";
import { isScaffolding } from "../automation/urn";

export interface OrphanedStack {
  stack: string;
  /** How many resources of its program the state has. */
  resources: number;
}

/** How {@link stackName} ends; a platform team's own stacks in the project have other names. */
export const OBJECT_STACK = /-[0-9a-f]{19}$/;

/**
 * The stacks of objects that do not exist. The kinds are those whose CRDs Kindstack has installed in the cluster, so that no
 * kind is left out for want of its code. What is created or deleted meanwhile is no orphan.
 *
 * @throws ApiError where not all objects can be listed
 */
export async function orphanedStacks(
  client: Pick<KubernetesClient, "list" | "pages">,
  engine: Pick<StackEngine, "listStacks" | "exportStack">,
  signal: AbortSignal,
): Promise<OrphanedStack[]> {
  const names = async () => (await engine.listStacks(signal)).map(({ name }) => name);
  const before = (await names()).filter((name) => OBJECT_STACK.test(name));
  const held = await heldStacks(client);
  const after = new Set(await names());
  const orphaned: OrphanedStack[] = [];
  for (const stack of before.filter((name) => after.has(name) && !held.has(name)).sort()) {
    const state = await engine.exportStack(stack, signal);
    if (state === undefined) continue;
    orphaned.push({ stack, resources: urnsIn(state).filter((urn) => !isScaffolding(urn)).length });
  }
  return orphaned;
}

async function heldStacks(client: Pick<KubernetesClient, "list" | "pages">): Promise<Set<string>> {
  const held = new Set<string>();
  for (const definition of (await client.list(DEFINITION_TYPE)).items.filter(isInstalled)) {
    const { group, names, versions } = definition.spec as DefinitionSpec;
    const served = versions.find((version) => version.served);
    if (served === undefined) throw new Error(`${definition.metadata.name} has no version that is served`);
    const type = { apiVersion: `${group}/${served.name}`, kind: names.kind };
    for await (const { items } of client.pages(type)) {
      for (const { metadata } of items) held.add(stackName({ group, ...names }, objectKey(metadata)));
    }
  }
  return held;
}

interface DefinitionSpec {
  group: string;
  names: { kind: string; plural: string; singular: string };
  versions: { name: string; served: boolean }[];
}

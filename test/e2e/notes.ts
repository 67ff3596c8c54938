import { expect } from "vitest";
import { known, type ResourceType } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { findCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import { client } from "./objects";

/** Applies objects of a kind with these specs by name, and waits until all are synced. */
export async function applySynced(type: ResourceType, namespace: string, specs: Record<string, object>): Promise<void> {
  const { apiVersion, kind } = type;
  for (const [name, spec] of Object.entries(specs)) {
    await client.apply({ apiVersion, kind, metadata: { name, namespace }, spec });
  }
  for (const name of Object.keys(specs)) {
    await eventually(async () => {
      const live = await known(client.get(type, name, namespace));
      expect(live && findCondition(statusOf(live).conditions, "Synced")?.status).toBe("True");
    });
  }
}

/** Deletes all objects of a kind in a namespace, and the kind's definition. */
export async function removeKind(type: ResourceType, namespace: string): Promise<void> {
  const all = async () => (await client.list(type, { namespace })).items;
  for (const { metadata } of await all()) await client.delete(type, metadata.name, namespace);
  await eventually(async () => expect(await all()).toEqual([]));
  const [group] = type.apiVersion.split("/");
  const definition = { apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition" };
  await client.delete(definition, `${type.plural}.${group}`);
}

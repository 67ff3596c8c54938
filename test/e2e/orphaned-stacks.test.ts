import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Manifest } from "../../providers/kubernetes/client";
import { PAUSED_ANNOTATION } from "../../stacks/contract/annotations";
import { kindName } from "../../stacks/contract/kind";
import { stackName } from "../../stacks/contract/object";
import { tenant as tenantKind } from "../../stacks/kinds/tenant/kind";
import { controlPlane } from "../control-plane";
import { applyUntilReady, removeUntilGone, untilGone, untilReady } from "./conditions";
import { namespace, podSet, tenant, uniqueName } from "./manifests";
import { apply, edit, find, remove } from "./objects";
import { kindstack, useOperator } from "./operator";
import { PulumiProject } from "./pulumi";

/* Stacks whose objects were removed without their finalizer: as of a CRD or a namespace that was deleted by force. */
const operator = useOperator();
const [again, destroyed] = [uniqueName("again"), uniqueName("destroyed")];
const made = (name: string) => tenant(name, { namespaces: [name] });
const kept = podSet(uniqueName("kept"), 1);
const stackOf = ({ metadata: { name = "" } }: Manifest) => stackName(tenantKind, name);
const backend = () => ({
  PULUMI_BACKEND_URL: `file://${operator.stateDirectory}`,
  PULUMI_CONFIG_PASSPHRASE_FILE: controlPlane().env.PULUMI_CONFIG_PASSPHRASE_FILE ?? "",
});
const orphaned = () =>
  JSON.parse(kindstack(["stacks", "--orphaned", "-o", "json"], backend())) as { stack: string; resources: number }[];

beforeAll(async () => {
  for (const object of [made(again), made(destroyed), kept]) await apply(object);
  for (const object of [made(again), made(destroyed), kept]) await untilReady(object);
  expect(orphaned()).toEqual([]);
  for (const object of [made(again), made(destroyed)]) {
    await edit(object, { metadata: { annotations: { [PAUSED_ANNOTATION]: "true" } } });
    await remove(object);
    await edit(object, { metadata: { finalizers: null } });
    await untilGone(object);
  }
});
afterAll(async () => {
  for (const name of [again, destroyed]) await remove(namespace(name));
});

it("are listed with the number of their resources, which stay; those of other objects are not", async () => {
  const stacks = [stackOf(made(again)), stackOf(made(destroyed))].sort();
  expect(orphaned()).toEqual(stacks.map((stack) => ({ stack, resources: expect.any(Number) })));
  expect(orphaned().every(({ resources }) => resources > 0)).toBe(true);
  for (const name of [again, destroyed]) expect(await find(namespace(name))).toBeDefined();

  const all = kindstack(["stacks"], backend()).trimEnd().split("\n");
  expect(all).toEqual(expect.arrayContaining(stacks));
  expect(all).toHaveLength(3);
});

it("are told of only where the backend is this cluster's, and all kinds can be looked at", async () => {
  const file = path.join(operator.stateDirectory, ".pulumi/kindstack/owner.json");
  const record = fs.readFileSync(file, "utf8");
  try {
    fs.writeFileSync(file, JSON.stringify({ ...JSON.parse(record), cluster: "other", clusterUid: "other" }));
    expect(orphaned).toThrow(/belongs to the operator in .* of cluster other, and the current cluster is/);
  } finally {
    fs.writeFileSync(file, record);
  }
});

it("are taken over by an object of the same name, and are gone when that is deleted", async () => {
  const object = made(again);
  await applyUntilReady(object);
  expect(orphaned().map(({ stack }) => stack)).toEqual([stackOf(made(destroyed))]);

  await removeUntilGone(object);
  await untilGone(namespace(again));
});

it(`are destroyed by Pulumi's CLI, with what they made (${kindName(tenantKind)})`, async () => {
  const pulumi = await PulumiProject.open(backend());
  const { exitCode, output } = await pulumi.destroy(stackOf(made(destroyed)), "--remove");
  pulumi.close();
  expect(exitCode, output).toBe(0);

  await untilGone(namespace(destroyed));
  expect(kindstack(["stacks", "--orphaned"], backend())).toBe("each stack has its object\n");
});

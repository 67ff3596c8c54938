import { beforeAll, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import type { Manifest } from "../../providers/kubernetes/client";
import { MODE_ANNOTATION } from "../../stacks/contract/mode";
import { conditionOf, removeUntilGone, untilCondition, untilSynced } from "./conditions";
import { deploymentOf, memcached, uniqueName } from "./manifests";
import { apply, client, edit, find } from "./objects";
import { kindstack, TestOperator, useReplicas } from "./operator";

/* An upgrade of the operator alone: its modes are there, and the CRDs that they need are not. */

const operators = useReplicas();
let definitions: Manifest[];

beforeAll(async () => {
  const printed = kindstack(["crds", "--kinds", "memcacheds"]);
  definitions = parseAllDocuments(printed).map((document) => document.toJS() as Manifest);
  for (const manifest of definitions) {
    if (manifest.metadata.name?.startsWith("memcacheds")) await apply(manifest);
    else if (manifest.kind === "CustomResourceDefinition") await removeWhole(manifest); // of an earlier file's operator
  }
  const operator = new TestOperator({ installCrds: false, args: ["--kinds", "memcacheds"] });
  operators.push(operator);
  await operator.start();
});

async function removeWhole(manifest: Manifest): Promise<void> {
  if ((await find(manifest)) === undefined) return;
  await removeUntilGone(manifest);
}

it("a change that is to wait is applied once they are there, and not before", async () => {
  const object = memcached(uniqueName("cache"));
  await apply({ ...object, metadata: { ...object.metadata, annotations: { [MODE_ANNOTATION]: "Propose" } } });
  const stalled = await untilCondition(object, "Synced", "False", "NotServed");
  expect(conditionOf(stalled, "Stalled").message).toContain("run kindstack crds and apply what it prints");
  expect(stalled.metadata.finalizers).toBeUndefined();
  expect(await find(deploymentOf(object))).toBeUndefined();

  for (const manifest of definitions) await apply(manifest);
  await operators[0]?.restart();
  await untilCondition(object, "Synced", "False", "WaitsForApproval");
  kindstack(["approve", "memcacheds", object.metadata.name ?? "", "-n", "default", "--yes"]);
  await untilSynced(object);
  await edit(object, { metadata: { annotations: { [MODE_ANNOTATION]: null } } });
  await client.delete(object, object.metadata.name ?? "", "default");
});

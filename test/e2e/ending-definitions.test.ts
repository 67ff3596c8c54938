import fs from "node:fs";
import { afterAll, expect, it } from "vitest";
import { eventually } from "../../src/testing/eventually";
import { customResourceDefinition, DEFINITION_TYPE } from "../../stacks/contract/crd";
import { kindName } from "../../stacks/contract/kind";
import { podSet as podSetKind } from "../../stacks/kinds/podset/kind";
import { parseConfiguration } from "../../stacks/platform/parse-configuration";
import { missingPrerequisites } from "../../stacks/platform/prerequisites";
import { controlPlane } from "../control-plane";
import { removeUntilGone, untilReady } from "./conditions";
import { POD, POD_SET, podSet, uniqueName } from "./manifests";
import { apply, client, find, remove } from "./objects";
import { kindstack, TestOperator } from "./operator";

/* CRDs that are deleted while no operator runs: they wait for their objects, and these for an operator. */
const operator = new TestOperator({ args: ["--kinds", "podsets"], installCrds: false });
const definition = { ...DEFINITION_TYPE, metadata: { name: kindName(podSetKind) } };
const uidOf = async () => (await find(definition))?.metadata.uid;
afterAll(async () => {
  await operator.dispose();
  await client.apply(customResourceDefinition(podSetKind));
  await eventually(() => client.list(POD_SET)); // as the next file expects it
});

/** An object that is up to date, whose CRD is deleted after the operator has stopped. */
async function deletedWithoutOperator() {
  const object = podSet(uniqueName("ending"), 1);
  await eventually(() => apply(object)); // the CRD may be served a moment later
  await untilReady(object);
  await operator.stop();
  await remove(definition);
  expect((await find(definition))?.metadata.deletionTimestamp).toBeDefined();
  expect(await find(object)).toBeDefined();
  return object;
}

it("are told of by --check, which says what to do", async () => {
  await operator.start({ args: ["--install-crds"] });
  await deletedWithoutOperator();
  const configuration = parseConfiguration({ networkPolicy: "false", backendUrl: "s3://s", passphrase: "p" }, "1.2.3");
  expect(await missingPrerequisites(configuration, [podSetKind], client)).toContainEqual(
    expect.stringContaining(`CRDs are being deleted, with all their objects: ${kindName(podSetKind)}`),
  );
});

it("are gone when the operator has deleted their objects, and are installed again with --install-crds", async () => {
  const before = await uidOf();
  await operator.start({ args: ["--install-crds"] });
  await eventually(async () => {
    const now = await find(definition);
    expect(now?.metadata).not.toMatchObject({ uid: before });
    expect(now?.metadata).toMatchObject({ uid: expect.any(String) });
  });
  const object = podSet(uniqueName("after"), 1);
  await eventually(() => apply(object));
  await untilReady(object);
  await removeUntilGone(object);
});

it("are served again without a restart when they are applied by hand", async () => {
  const object = await deletedWithoutOperator();
  await operator.start();
  await eventually(async () => expect(await uidOf()).toBeUndefined());
  expect(operator.log).toContain("the CRD of a kind is being deleted, with all objects of the kind");

  await client.apply(customResourceDefinition(podSetKind));
  await eventually(() => apply(object));
  await untilReady(object);
  await removeUntilGone(object);
});

it("end with what their objects made where the state is gone too, once the backend is claimed as the operator says", async () => {
  const object = await deletedWithoutOperator();
  const { uid } = (await find(object))?.metadata ?? {};
  const pods = async () => (await client.list(POD, { labelSelector: `kindstack.dev/owner-uid=${uid}` })).items.length;
  expect(await pods()).toBe(1);
  fs.rmSync(operator.stateDirectory, { recursive: true });
  await operator.start();
  const claim = await eventually(() => {
    const [, words = ""] = /kindstack (state claim -n \w+)/.exec(operator.takeLog()) ?? [];
    expect(words).not.toBe("");
    return words;
  });

  kindstack(claim.split(" "), {
    PULUMI_BACKEND_URL: `file://${operator.stateDirectory}`,
    PULUMI_CONFIG_PASSPHRASE_FILE: controlPlane().env.PULUMI_CONFIG_PASSPHRASE_FILE ?? "",
  });

  await eventually(async () => expect(await uidOf()).toBeUndefined());
  expect(await pods()).toBe(0);
});

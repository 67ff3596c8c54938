import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Manifest } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { PAUSED_ANNOTATION } from "../../stacks/contract/annotations";
import { statusOf } from "../../stacks/contract/kind";
import { stackName } from "../../stacks/contract/object";
import { useDirectory } from "../directories";
import { removeUntilGone, stackOf, untilCondition, untilReady } from "./conditions";
import { uniqueName } from "./manifests";
import { apply, client, edit, requestUpdate } from "./objects";
import { kindstack, useOperator } from "./operator";
import { PULUMI_TIMEOUT_MS } from "./platform-team";
import { PulumiProject } from "./pulumi";
import { writeUnawareKinds } from "./unaware-kinds";

/* Pulumi's CLI deletes nothing of plugins or of kinds' own providers while a running operator manages it. */

const ROOT = path.resolve(__dirname, "../..");
const directory = useDirectory();
const keyring = path.join(directory, "keyring");
const shelf = path.join(directory, "shelf");
const own = path.join(directory, "own");
const group = `${uniqueName("guard")}.example.com`;
fs.mkdirSync(keyring);
const plurals = writeUnawareKinds(own, { group, shelf });
const operator = useOperator({
  args: ["--kinds", own, "--kind-files", directory],
  env: { KEYRING_FOLDER: keyring },
});
let project: PulumiProject;
beforeAll(async () => {
  const environment = { PULUMI_BACKEND_URL: `file://${operator.stateDirectory}`, KEYRING_FOLDER: keyring };
  project = await PulumiProject.open(environment);
  const plugins = path.join(project.directory, "home/plugins/resource-keyring-v1.0.0");
  fs.mkdirSync(plugins, { recursive: true });
  const plugin = "pulumi-resource-keyring";
  fs.symlinkSync(path.join(ROOT, "examples/plugins", plugin), path.join(plugins, plugin));
});
afterAll(async () => {
  project.close();
  const definitions = await client.resourceType("apiextensions.k8s.io/v1", "CustomResourceDefinition");
  for (const plural of plurals) await client.delete(definitions, `${plural}.${group}`);
});

describe("a stack with resources that do not know of the operator", () => {
  const objectOf = (kind: string, spec: object): Manifest => ({
    ...{ apiVersion: `${group}/v1`, kind },
    ...{ metadata: { name: uniqueName("kept"), namespace: "default" }, spec },
  });
  /** What all objects have made. */
  const world = () => [keyring, shelf].flatMap((folder) => fs.readdirSync(folder)).sort();
  const urnsOf = async (stack: string): Promise<string[]> => {
    const { deployment } = JSON.parse(await project.outputOf(stack, "stack", "export"));
    return deployment.resources.map(({ urn }: { urn: string }) => urn).sort();
  };
  const pause = (object: Manifest, paused: "true" | null) =>
    edit(object, { metadata: { annotations: { [PAUSED_ANNOTATION]: paused } } });
  async function refused(stack: string, told: RegExp, ...words: string[]): Promise<void> {
    const before = world();
    const { exitCode, output } = await project.run(stack, ...words);
    expect(output).toMatch(told);
    expect(exitCode).not.toBe(0);
    expect(world()).toEqual(before);
  }
  const MANAGED = /is in the cluster, where the operator works on it/;

  const DESTROY = ["destroy", "--yes", "--skip-preview"];

  it.each([
    ["Mixed", "letter"],
    ["Plain", "letter"],
    ["Lone", "key"],
  ])("keeps all of a %s until it is paused", { timeout: PULUMI_TIMEOUT_MS }, async (kind, resource) => {
    const before = world();
    const object = objectOf(kind, { letters: ["letter"] });
    const stack = await stackOf(object);
    const urns = await urnsOf(stack);
    const [urn = ""] = urns.filter((one) => one.endsWith(`/${resource}`));
    await refused(stack, MANAGED, ...DESTROY);
    await refused(stack, MANAGED, ...DESTROY, "--continue-on-error");
    await refused(stack, MANAGED, ...DESTROY, "--target", urn, "--target-dependents");
    await refused(stack, /depend/, ...DESTROY, "--target", urn);
    await refused(stack, /depend/, "state", "delete", urn, "--yes");
    await project.outputOf(stack, "refresh", "--yes", "--skip-preview");
    expect(await urnsOf(stack)).toEqual(urns);

    const all = world();
    await requestUpdate(object, "after");
    await eventually(async () => expect(statusOf(await untilReady(object)).lastHandledReconcile).toBe("after"));
    expect(await urnsOf(stack)).toEqual(urns);
    expect(world()).toEqual(all);

    await pause(object, "true");
    await project.outputOf(stack, ...DESTROY);
    expect(world()).toEqual(before);

    await pause(object, null);
    await requestUpdate(object, "returned");
    await eventually(async () => expect(statusOf(await untilReady(object)).lastHandledReconcile).toBe("returned"));
    expect(world()).toHaveLength(all.length);
    await removeUntilGone(object);
    expect(world()).toEqual(before);
  });

  it("keeps what an update has made that failed, and what replaced other things", {
    timeout: PULUMI_TIMEOUT_MS,
  }, async () => {
    const before = world();
    const object = objectOf("Mixed", { letters: ["letter", "refused"] });
    await apply(object);
    await untilCondition(object, "Synced", "False", "InternalError");
    const named = { group, plural: "mixeds", singular: "mixed" };
    const stack = stackName(named, `default/${object.metadata.name}`);
    expect(world()).toHaveLength(before.length + 3);
    await eventually(() => refused(stack, MANAGED, ...DESTROY)); // a retry may have the lock

    await edit(object, { spec: { letters: ["letter"], length: 32 } });
    await untilReady(object);
    expect(world()).toHaveLength(before.length + 3);
    await refused(stack, MANAGED, ...DESTROY);

    await edit(object, { spec: { letters: [] } });
    await eventually(() => expect(world()).toHaveLength(before.length + 2));
    await removeUntilGone(object);
    expect(world()).toEqual(before);
  });

  it("shows its users the resources of the program alone", { timeout: PULUMI_TIMEOUT_MS }, async () => {
    const object = objectOf("Lone", {});
    const { name = "" } = object.metadata;
    await stackOf(object);
    const of = ["lone", name, "--namespace", "default", "--kinds", own];
    const state = {
      PULUMI_BACKEND_URL: `file://${operator.stateDirectory}`,
      KINDSTACK_WORK_DIR: operator.workDirectory,
    };
    for (const command of ["history", "outputs"]) {
      const shown = kindstack([command, ...of], state);
      expect(shown).toContain(`${name}/key`);
      expect(shown).not.toMatch(/guard/i);
    }
    await removeUntilGone(object);
  });

  it("is handed over to `pulumi up` without the guard, and back", { timeout: PULUMI_TIMEOUT_MS }, async () => {
    const object = objectOf("Lone", {});
    const stack = await stackOf(object);
    const [keys, urns] = [fs.readdirSync(keyring), await urnsOf(stack)];
    const manifests = [path.join(directory, "lone.json")];
    fs.writeFileSync(manifests[0] ?? "", JSON.stringify(object));
    project.configure(stack, { manifests, kinds: [own] });

    const refusedUp = await project.up(stack);
    expect(refusedUp.output).toMatch(MANAGED);
    expect(await urnsOf(stack)).toEqual(urns);

    await pause(object, "true");
    const { exitCode, output, changes } = await project.up(stack);
    expect(exitCode, output).toBe(0);
    expect(changes).toEqual({});
    expect((await urnsOf(stack)).filter((urn) => /guard/i.test(urn))).toEqual([]);

    await pause(object, null);
    await requestUpdate(object, "returned");
    await eventually(async () => expect(statusOf(await untilReady(object)).lastHandledReconcile).toBe("returned"));
    expect(await urnsOf(stack)).toEqual(urns);
    expect(fs.readdirSync(keyring)).toEqual(keys);
    await removeUntilGone(object);
  });
});

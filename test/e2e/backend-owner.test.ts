import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { errorMessageOf } from "../../providers/errors";
import type { Manifest } from "../../providers/kubernetes/client";
import { clusterOf } from "../../providers/kubernetes/cluster";
import { eventually } from "../../src/testing/eventually";
import { findCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import { controlPlane } from "../control-plane";
import { applyUntilReady, conditionOf, removeUntilGone, untilCondition, untilGone, untilReady } from "./conditions";
import { namespace, tenant, uniqueName } from "./manifests";
import { apply, client, edit, find, get, remove } from "./objects";
import { kindstack, useOperator } from "./operator";

/* Whose a backend is. Two clusters are two names here; that a UID tells them apart as well is in test/backend. */
const operator = useOperator();
const record = () => path.join(operator.stateDirectory, ".pulumi/kindstack/owner.json");
const owner = () => JSON.parse(fs.readFileSync(record(), "utf8"));
const refused = (reason: string) => operator.metric("kindstack_backend_refused", { reason });
const made = (name: string) => tenant(name, { namespaces: [name] });

/** Waits until an object at rest says that it is not looked after, or does no more. */
const untilStalled = (object: Manifest, reason: string | undefined) =>
  eventually(async () => {
    const stalled = findCondition(statusOf(await get(object)).conditions, "Stalled");
    expect(stalled?.reason).toBe(reason);
    return stalled?.message ?? "";
  });

const passphrase = controlPlane().env.PULUMI_CONFIG_PASSPHRASE_FILE ?? "";
const cli = (words: string[], env: Record<string, string> = {}) =>
  kindstack(words, {
    PULUMI_BACKEND_URL: `file://${operator.stateDirectory}`,
    PULUMI_CONFIG_PASSPHRASE_FILE: passphrase,
    ...env,
  });
const claim = (cluster: string, ...words: string[]) =>
  cli(["state", "claim", "-n", "default", ...words], { KINDSTACK_CLUSTER: cluster });

const [resting, moved] = [made(uniqueName("resting")), made(uniqueName("moved"))];
beforeAll(async () => {
  for (const object of [resting, moved]) await apply(object);
  for (const object of [resting, moved]) await untilReady(object);
});
afterAll(async () => {
  if (operator.runs) await operator.restart();
  else await operator.start();
  claim((await clusterOf(client))?.name ?? "", "--from", owner().cluster);
});

it("the operator that uses a backend first writes whose it is, once, and no stack", async () => {
  const cluster = await clusterOf(client);
  const written = owner();
  expect(written).toMatchObject({ cluster: cluster?.uid, clusterUid: cluster?.uid, namespace: "default" });
  await operator.restart();
  await edit(moved, { spec: { adminEmail: "other@example.com" } });
  await untilReady(moved);
  expect(owner()).toEqual(written);
  expect(await refused("BackendForeign")).toBe(0);
  cli(["backup", path.join(operator.directory, "backup")]);
  expect(fs.readdirSync(path.join(operator.directory, "backup")).sort()).toHaveLength(3); // two stacks and their list
});

describe("the operator of another cluster", () => {
  const late = made(uniqueName("late"));

  it("updates and deletes nothing, and says why on all objects", async () => {
    await operator.stop();
    const early = await apply(made(uniqueName("early")));
    await operator.start({ env: { KINDSTACK_CLUSTER: "b" } });
    const message = await untilStalled(resting, "BackendForeign");
    expect(message).toContain(`of cluster ${owner().cluster}`);
    expect(message).toContain(`KINDSTACK_CLUSTER=b kindstack state claim -n default --from ${owner().cluster}`);
    expect(conditionOf(await get(resting), "Ready")).toMatchObject({ status: "True" });

    const waiting = await untilCondition(early, "Synced", "False", "BackendForeign");
    expect(waiting.metadata.finalizers).toBeUndefined();
    await removeUntilGone(early);

    await apply(late);
    const refusedObject = await untilCondition(late, "Synced", "False", "BackendForeign");
    expect(refusedObject.metadata.finalizers).toBeUndefined();

    await remove(moved);
    const kept = await untilCondition(moved, "Synced", "False", "DeletionFailed");
    expect(conditionOf(kept, "Synced").message).toContain("the state's backend belongs to");
    expect(await find(namespace(moved.metadata.name ?? ""))).toHaveProperty("metadata.uid");
    expect(await find(namespace(late.metadata.name ?? ""))).toBeUndefined();
    expect(await refused("BackendForeign")).toBe(1);
    expect((await operator.get("/readyz")).status).toBe(200);
  });

  it("takes over with a claim that names whose it was, and continues by itself", async () => {
    const before = owner();
    expect(() => claim("b")).toThrow(new RegExp(`add|--from ${before.cluster}`));
    expect(owner()).toEqual(before);
    expect(claim("b", "--from", before.cluster)).toContain(
      "the backend belongs to the operator in the namespace default",
    );
    await untilReady(late);
    await untilGone(moved);
    expect(await find(namespace(moved.metadata.name ?? ""))).toBeUndefined();
    await untilStalled(resting, undefined);
    expect(await refused("BackendForeign")).toBe(0);
  });

  it("stops writing when the backend is claimed for a third one", async () => {
    claim("c", "--from", "b");
    await edit(late, { spec: { adminEmail: "third@example.com" } });
    await untilCondition(late, "Synced", "False", "BackendForeign");
    expect(operator.locks()).toEqual([]);
    await untilStalled(resting, "BackendForeign");
    claim("b", "--from", "c");
    await untilReady(late);
    await untilStalled(resting, undefined);
  });

  it("is told of by commands", () => {
    const own = fs.readFileSync(record(), "utf8");
    fs.writeFileSync(record(), JSON.stringify({ ...owner(), clusterUid: "another" }));
    const { stderr, status } = spawnSync(
      process.execPath,
      ["dist/src/cli/main.js", "backup", path.join(operator.directory, "warned")],
      {
        encoding: "utf8",
        env: {
          ...process.env,
          KUBECONFIG: controlPlane().kubeconfig,
          PULUMI_BACKEND_URL: `file://${operator.stateDirectory}`,
          PULUMI_CONFIG_PASSPHRASE_FILE: passphrase,
        },
      },
    );
    fs.writeFileSync(record(), own);
    expect(stderr).toContain(
      "warning: the state's backend belongs to the operator in the namespace default of cluster b",
    );
    expect(status).toBe(0);
  });
});

describe("a backend that cannot be seen", () => {
  const object = made(uniqueName("seen"));
  const b = { KINDSTACK_CLUSTER: "b" };

  it("is not taken for a new one while the operator runs, and is used again when it is back", async () => {
    await applyUntilReady(object);
    const away = `${operator.stateDirectory}-away`;
    fs.renameSync(operator.stateDirectory, away);
    await edit(object, { spec: { adminEmail: "away@example.com" } });
    const lost = await untilCondition(object, "Synced", "False", "BackendUnknown");
    expect(conditionOf(lost, "Synced").message).toContain("was there and is gone");
    await untilStalled(resting, "BackendUnknown");
    expect(fs.existsSync(operator.stateDirectory)).toBe(false);
    fs.renameSync(away, operator.stateDirectory);
    await untilReady(object);
    await untilStalled(resting, undefined);
  });

  it("is not taken for a new one at the start, under objects that have stacks", async () => {
    const empty = path.join(operator.directory, "empty");
    fs.mkdirSync(empty);
    await operator.restart({ env: { ...b, PULUMI_BACKEND_URL: `file://${empty}` } });
    expect(await untilStalled(resting, "BackendUnknown")).toContain("check PULUMI_BACKEND_URL");
    await remove(object);
    await untilCondition(object, "Synced", "False", "DeletionFailed");
    expect(await find(namespace(object.metadata.name ?? ""))).toHaveProperty("metadata.uid");
    expect(fs.readdirSync(empty)).toEqual([]);
    await operator.restart({ env: b });
    await untilGone(object);
    await untilStalled(resting, undefined);
  });

  it("of an older version is claimed when its stacks are of objects that live here", async () => {
    await operator.stop();
    fs.rmSync(record());
    await operator.start({ env: b });
    await eventually(() => expect(owner()).toMatchObject({ cluster: "b" }));
    expect(await refused("BackendUnknown")).toBe(0);
  });

  it("with stacks of objects of the same names elsewhere is not", async () => {
    await operator.stop();
    fs.rmSync(record());
    const stack = operator.stateFiles("/stacks/").find((file) => file.includes(resting.metadata.name ?? "")) ?? "";
    const state = fs.readFileSync(stack, "utf8");
    const { uid } = (await get(resting)).metadata;
    for (const file of operator.stateFiles("/stacks/").filter((name) => name !== stack)) fs.rmSync(file);
    fs.writeFileSync(stack, state.replaceAll(uid, "11111111-2222-3333-4444-555555555555"));
    await operator.start({ env: b });
    expect(await untilStalled(resting, "BackendUnknown")).toContain("were made for other objects of the same names");
    fs.writeFileSync(stack, state);
    await untilStalled(resting, undefined);
  });

  it("is not claimed by a restore", async () => {
    const [backup, target] = ["restored-backup", "restored"].map((name) => path.join(operator.directory, name));
    cli(["backup", backup ?? ""]);
    fs.mkdirSync(target ?? "");
    expect(cli(["restore", backup ?? ""], { PULUMI_BACKEND_URL: `file://${target}` })).toContain("restored");
    expect(fs.existsSync(path.join(target ?? "", ".pulumi/kindstack/owner.json"))).toBe(false);
  });
});

it("a claim that changes nothing says so", () => {
  expect(claim("b")).toContain("already");
  try {
    claim("b", "-n", "elsewhere");
  } catch (error) {
    expect.unreachable(errorMessageOf(error));
  }
  claim("b");
  expect(owner()).toMatchObject({ namespace: "default" });
});

import { createSecretKey } from "node:crypto";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { pino } from "pino";
import { beforeAll, describe, expect, it } from "vitest";
import type { LiveObject, ResourceType } from "../../providers/kubernetes/client";
import { OWNER_UID_LABEL } from "../../providers/kubernetes/ownership";
import type { GoEngine } from "../../src/automation/go-engine";
import { EventRecorder } from "../../src/controller/event-recorder";
import { installKinds } from "../../src/operator/install";
import { Manager } from "../../src/operator/manager";
import { ClusterView } from "../../src/preview/cluster-view";
import { preview, selectCandidates } from "../../src/preview/preview";
import { createMetrics } from "../../src/telemetry/metrics";
import { eventually } from "../../src/testing/eventually";
import { PAUSED_ANNOTATION, RECONCILE_ANNOTATION } from "../../stacks/contract/annotations";
import type { Condition } from "../../stacks/contract/condition";
import { stackName } from "../../stacks/contract/object";
import { declaredObjects } from "../../stacks/up/objects";
import { registerObjects } from "../../stacks/up/register";
import { openEngineIn } from "../automation/engine-in";
import { useDirectory } from "../directories";
import * as conditions from "../e2e/conditions";
import * as objects from "../e2e/objects";
import { filesUnder } from "../files";
import { HELD, TestCluster } from "../providers/kubernetes/test-cluster";
import { login, SALT, vault } from "./login";
import { installVault, VAULT_TOKEN } from "./vault";

/*
 * A kind whose program runs in the SDK's runtime, in an operator with the real engine and the real API server. Its plugin
 * is on PATH.
 */

const SECRET: ResourceType = { apiVersion: "v1", kind: "Secret", plural: "secrets", namespaced: true };
const cluster = TestCluster.use();
const directory = useDirectory();
let engine: GoEngine;
let logins: ResourceType;
let log = "";

beforeAll(async () => {
  await installKinds(cluster.client, [login]);
  logins = await cluster.client.resourceType("sdk.kindstack.dev/v1", "Login");
  vault.directory = path.join(directory, "vault");
  await mkdir(vault.directory);
  const environment = await installVault(path.join(directory, "bin"));
  const { processes, ...opened } = await openEngineIn(directory, { environment });
  engine = opened.engine;
  const write = (line: string) => {
    log += line;
  };
  const logger = pino({ level: "trace" }, { write });
  const stop = new AbortController();
  const running = new Manager({
    kinds: [login],
    client: cluster.client,
    engine,
    backend: { refusal: undefined, problem: async () => undefined, run: async () => {} },
    recorder: new EventRecorder({ client: cluster.client, logger }),
    metrics: createMetrics(),
    namespace: "default",
    planKey: async () => createSecretKey(Buffer.alloc(32)),
    logger,
    concurrency: 4,
    driftIntervalMs: 60_000,
    relistIntervalMs: 1_800_000,
    gracePeriodMs: 0,
  }).run(stop.signal);
  return async () => {
    for (const { metadata } of (await cluster.client.list(logins)).items) await remove(metadata.name);
    stop.abort();
    await running;
    await processes.close();
    const crds = await cluster.client.resourceType("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    await cluster.client.delete(crds, "logins.sdk.kindstack.dev");
  };
});

const LOGIN = { apiVersion: "sdk.kindstack.dev/v1", kind: "Login" };
const manifestOf = (name: string, spec: object = {}) =>
  cluster.manifest(LOGIN, name, { spec: { path: name, ...spec } });

const apply = (name: string, spec?: object) => objects.apply(manifestOf(name, spec));
const get = (name: string) => objects.get(manifestOf(name));
const annotate = (name: string, annotations: object) => objects.edit(manifestOf(name), { metadata: { annotations } });
const untilReady = (name: string, status: Condition["status"] = "True") =>
  conditions.untilCondition(manifestOf(name), "Ready", status);

async function remove(name: string): Promise<void> {
  await objects.remove(manifestOf(name));
  await conditions.untilGone(manifestOf(name));
}

const heldSecret = (name: string) => cluster.find(name, SECRET);
const textOf = (held: LiveObject | undefined, key: string) =>
  Buffer.from((held?.data as Record<string, string> | undefined)?.[key] ?? "", "base64").toString();
const entry = (name: string) => readFile(path.join(vault.directory, name), "utf8");
const vaultLog = async () => (await readFile(path.join(vault.directory, "log"), "utf8")).trim().split("\n");

/** The files of the state, and what the operator has written anywhere else. */
async function written(): Promise<string> {
  const files = filesUnder(directory).filter((file) => !file.startsWith(vault.directory));
  return (await Promise.all(files.map((file) => readFile(file, "latin1")))).join("\n");
}

async function planned(name: string, spec?: object) {
  const view = await ClusterView.open(cluster.client);
  const files = { objects: [{ manifest: manifestOf(name, spec), file: "login.yaml" }], problems: [] };
  const selection = selectCandidates([login], cluster.namespace, files);
  return preview({ engine, cluster: view, refresh: false }, selection);
}

describe("a program in the SDK's runtime", () => {
  it("gives outputs of a plugin's resources to Kubernetes objects, and secrets to a Secret", async () => {
    await apply("flow", { length: 9 });
    await untilReady("flow");
    await eventually(async () => expect((await get("flow")).status).toMatchObject({ secrets: 1 }));
    const held = await heldSecret("flow");
    expect(textOf(held, "password")).toMatch(/^[0-9a-f]{18}$/);
    expect(textOf(held, "salt")).toBe(SALT);
    expect((await cluster.find("flow"))?.data).toEqual({ length: "9", uid: held?.metadata.uid });
    expect(await entry("flow")).toMatch(/^[0-9a-f]{18}$/);
  });

  it("changes only what follows from a change, and repairs drift of what comes from outputs", async () => {
    await apply("change", { length: 4 });
    await untilReady("change");
    const [before, second] = [textOf(await heldSecret("change"), "password"), await entry("change")];
    await cluster.edit("change", { data: { length: "drifted" } });
    await eventually(async () => expect((await cluster.find("change"))?.data).toMatchObject({ length: "4" }));
    expect(textOf(await heldSecret("change"), "password")).toBe(before);
    await apply("change", { length: 4, path: "moved" });
    await untilReady("change");
    expect(textOf(await heldSecret("change"), "password")).toBe(before);
    expect(await entry("moved")).toBe(second);
  });

  it("finds in a refresh what of a plugin's resources is gone or has changed, and corrects it", async () => {
    const refreshed = async (name: string, request: string) => {
      await annotate(name, { [RECONCILE_ANNOTATION]: request });
      await eventually(async () => expect((await get(name))?.status).toMatchObject({ lastHandledReconcile: request }));
    };
    await apply("drift", { length: 5 });
    await untilReady("drift");
    const value = await entry("drift");
    await rm(path.join(vault.directory, "drift"));
    await refreshed("drift", "gone");
    expect(await entry("drift")).toBe(value);
    await writeFile(path.join(vault.directory, "drift"), "edited");
    await refreshed("drift", "edited");
    expect(await entry("drift")).toBe(value);
  });

  it("keeps secrets out of everything but the Secret and the plugin", async () => {
    await apply("quiet", { length: 20 });
    await untilReady("quiet");
    const report = await planned("quiet", { length: 21 });
    const [password, second] = [textOf(await heldSecret("quiet"), "password"), await entry("quiet")];
    expect(report.objects[0]?.resources.map(({ name }) => name)).toContain("quiet/secret");
    const events = await cluster.client.json<object>("GET", "/apis/events.k8s.io/v1/events");
    const told = { status: JSON.stringify(await get("quiet")), events: JSON.stringify(events) };
    const places = { state: await written(), log, ...told, preview: JSON.stringify(report) };
    expect(places.state).toContain("vault:index:Entry");
    for (const [place, text] of Object.entries(places)) {
      for (const value of [password, second, SALT, VAULT_TOKEN]) {
        for (const form of [value, Buffer.from(value).toString("base64").replace(/=+$/, "").slice(0, -1)]) {
          expect(text.includes(form), `${place} has ${value}`).toBe(false);
        }
      }
    }
  });

  it("is previewed with what is known only after the update", async () => {
    const report = await planned("new");
    expect(report.objects).toMatchObject([{ action: "create", errors: [] }]);
    expect(report.objects[0]?.resources.map(({ name, type }) => `${type} ${name}`)).toEqual([
      ...["ConfigMap new/config", "Entry new/entry", "KeyPair new/keys"],
      ...["Password new/keys/first", "Password new/keys/second", "Secret new/secret"],
    ]);
    expect(await heldSecret("new")).toBeUndefined();

    await apply("known", { length: 5 });
    await untilReady("known");
    const change = await planned("known", { length: 6 });
    const fields = change.objects[0]?.resources.find(({ name }) => name === "known/config")?.fields;
    expect(fields).toMatchObject([
      { path: "data.length", before: "5", after: "6" }, // of a replacement, the engine knows what it is given
      { path: "data.uid", after: "[unknown]" },
    ]);
  });

  it("names the resource that failed and the plugin's words in the condition, and recovers", async () => {
    await apply("failing", { path: "forbidden" });
    const object = await untilReady("failing", "False");
    const ready = conditions.conditionOf(object, "Ready");
    expect(ready).toMatchObject({ reason: "UpdateFailed" });
    expect(ready.message).toMatch(/^failing\/entry: .*the vault refuses the path forbidden/);
    expect((await cluster.find("failing"))?.data).toMatchObject({ length: "16" }); // the rest was made
    await apply("failing", { path: "allowed" });
    await untilReady("failing");
    expect(await entry("allowed")).not.toBe("");
  });

  it("keeps what follows from a resource whose update fails", async () => {
    await apply("upstream");
    await untilReady("upstream");
    const [uid, made] = [(await cluster.find("upstream"))?.metadata.uid, await entry("upstream")];
    await apply("upstream", { label: "not a label" });
    const object = await untilReady("upstream", "False");
    expect(conditions.conditionOf(object, "Ready").message).toMatch(/^upstream\/secret: /);
    expect((await cluster.find("upstream"))?.metadata).toMatchObject({ uid });
    expect(await entry("upstream")).toBe(made);
    await apply("upstream", { fails: true });
    await eventually(async () => {
      expect(conditions.conditionOf(await get("upstream"), "Ready").message).toBe("the program fails");
    });
    expect(await entry("upstream")).toBe(made);
    await apply("upstream", { label: "fine" });
    await untilReady("upstream");
    expect((await cluster.find("upstream"))?.metadata).toMatchObject({ uid });
    expect((await vaultLog()).filter((line) => / upstream\/entry$/.test(line))).toEqual(["create upstream/entry"]);
  });

  it("fails alone, while the programs of other objects run", async () => {
    await Promise.all([apply("throws", { fails: true }), apply("works")]);
    const [throws] = await Promise.all([untilReady("throws", "False"), untilReady("works")]);
    const ready = conditions.conditionOf(throws, "Ready");
    expect(ready).toMatchObject({ reason: "InternalError", message: "the program fails" });
  });

  it("is the same program for `pulumi up`, in the object's own stack and below a component in another one", async () => {
    await apply("handed", { length: 3 });
    await untilReady("handed");
    const password = textOf(await heldSecret("handed"), "password");
    await annotate("handed", { [PAUSED_ANNOTATION]: "true" });
    const up = async (stack: string, objects: ReturnType<typeof manifestOf>[]) => {
      const manifests = objects.map((manifest) => ({ manifest, file: "login.yaml" }));
      const declared = await declaredObjects(manifests, [login], stack, "default");
      return engine.up(stack, () => registerObjects(declared, stack), { sdkRuntime: true });
    };
    const own = await up(stackName(login, `${cluster.namespace}/handed`), [manifestOf("handed", { length: 3 })]);
    expect(own).toMatchObject({ failures: [], summary: { resourceChanges: { update: 2 } } }); // of the owner
    expect(textOf(await heldSecret("handed"), "password")).toBe(password);

    const team = await up("team", [manifestOf("one"), manifestOf("two")]);
    expect(team).toMatchObject({ failures: [], summary: { result: "succeeded" } });
    const urns = team.resources.filter(({ name }) => name.endsWith("/entry")).map(({ urn }) => urn.split("::")[2]);
    expect(urns).toHaveLength(2);
    expect(urns[0]).toMatch(/Login\$vault:index:Entry$/);
    expect(await engine.destroy("team")).toMatchObject({ summary: { result: "succeeded" } });

    await annotate("handed", { [PAUSED_ANNOTATION]: null, [RECONCILE_ANNOTATION]: "now" });
    await eventually(async () => {
      const { uid } = (await get("handed")).metadata;
      expect((await heldSecret("handed"))?.metadata.labels).toMatchObject({ [OWNER_UID_LABEL]: uid });
    });
    expect(textOf(await heldSecret("handed"), "password")).toBe(password);
  });

  it("is destroyed in the order of dependencies", async () => {
    await apply("order");
    await untilReady("order");
    const before = (await vaultLog()).length;
    await cluster.applyAs("another", cluster.manifest(SECRET, "order", {}, HELD));
    await cluster.client.delete(logins, "order", cluster.namespace);
    await eventually(async () => {
      expect((await heldSecret("order"))?.metadata.deletionTimestamp).toEqual(expect.any(String));
      expect((await vaultLog()).slice(before)).toContain("delete order/entry");
    });
    expect(await vaultLog()).not.toContain("delete order/keys/first"); // which the Secret depends on
    await cluster.removeFinalizers("order", SECRET);
    await remove("order");
    expect((await vaultLog()).slice(before)).toEqual(
      expect.arrayContaining(["delete order/entry", "delete order/keys/first", "delete order/keys/second"]),
    );
    const stack = stackName(login, `${cluster.namespace}/order`);
    await eventually(() =>
      expect(filesUnder(path.join(directory, "state")).filter((file) => file.includes(stack))).toEqual([]),
    );
  });
});

import { createSecretKey, randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { pino } from "pino";
import Type from "typebox";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { failureOf } from "../../providers/errors";
import { known, type LiveObject, type Manifest, type ResourceType } from "../../providers/kubernetes/client";
import type { UpOptions, UpResult } from "../../src/automation/engine";
import type { PlannedChange } from "../../src/automation/planned-changes";
import type { Program } from "../../src/automation/program";
import { EventRecorder } from "../../src/controller/event-recorder";
import { installKinds } from "../../src/operator/install";
import { Manager, type ManagerOptions } from "../../src/operator/manager";
import { createMetrics } from "../../src/telemetry/metrics";
import { eventually } from "../../src/testing/eventually";
import { PAUSED_ANNOTATION } from "../../stacks/contract/annotations";
import type { DriftReport } from "../../stacks/contract/capabilities";
import { findCondition } from "../../stacks/contract/condition";
import { type AnyKind, defineKind, statusOf } from "../../stacks/contract/kind";
import { MODE_ANNOTATION } from "../../stacks/contract/mode";
import { FINALIZER } from "../../stacks/contract/object";
import { upResult } from "../automation/up-result";
import { CONFIG_MAP, TestCluster } from "../providers/kubernetes/test-cluster";
import { roleFor, userNamed } from "../rights";
import { GADGET } from "./gadget";

/*
 * What the operator asks of the engine, against the real API server: with an engine that only notes what it is asked,
 * and a kind that no other operator serves.
 */

const gadget = defineKind({
  ...GADGET,
  spec: Type.Object({ holds: Type.Array(Type.String({ maxLength: 63 }), { maxItems: 9 }) }),
  owns: [],
  capabilities: {
    claims: { of: ({ spec }) => spec.holds },
    external: { findDrift: () => findDrift(), removeUntracked: async () => {} },
  },
});
/** How the kind finds drift. */
const noDrift = async (): Promise<DriftReport> => ({ drifted: new Map(), unknown: new Map() });
let findDrift = noDrift;

const logger = pino({ level: "silent" });
const cluster = TestCluster.use();
let type: ResourceType;
let calls: string[];
/** What the backend has. */
const stacks = new Set<string>();
/** What an update would do. */
let planned: PlannedChange[] = [];
let stop: (() => Promise<void>) | undefined;

beforeAll(async () => {
  await installKinds(cluster.client, [gadget]);
  type = await cluster.client.resourceType("test.kindstack.dev/v1", "Gadget");
  return async () => {
    const crds = await cluster.client.resourceType("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    await cluster.client.delete(crds, "gadgets.test.kindstack.dev");
  };
});
beforeEach(() => {
  calls = [];
});
afterEach(async () => {
  await stop?.();
  for (const { metadata } of (await cluster.client.list(type)).items) {
    await edit(metadata.name, { metadata: { finalizers: null } });
    await cluster.client.delete(type, metadata.name, metadata.namespace);
  }
});

/** Runs an operator until the test's end or `stop`. `up` is what its engine's updates do. */
function start(
  up: (options: UpOptions, program: Program) => Promise<UpResult> = async () => upResult(),
  kinds: readonly AnyKind[] = [gadget],
  options: Partial<ManagerOptions> = {},
): void {
  const abort = new AbortController();
  const running = new Manager({
    kinds,
    client: cluster.client,
    engine: {
      up: (stack, program, options = {}) => {
        calls.push("up");
        stacks.add(stack);
        return up(options, program);
      },
      preview: async () => {
        calls.push("preview");
        return { exists: false, changes: planned, failures: [] };
      },
      destroy: async (_stack, { release } = {}) => {
        if (release) calls.push("release");
        calls.push("destroy");
        return upResult({ kind: "destroy" });
      },
      previewDestroy: async () => ({ exists: false, changes: [], failures: [] }),
      listStacks: async () => [...stacks].map((name) => ({ name })),
      forgetDestroyed: async () => {},
    },
    backend: { refusal: undefined, problem: async () => undefined, run: async () => {} },
    recorder: new EventRecorder({ client: cluster.client, logger }),
    planKey: async () => createSecretKey(Buffer.alloc(32)),
    metrics: createMetrics(),
    namespace: "default",
    logger,
    concurrency: 2,
    driftIntervalMs: 20,
    relistIntervalMs: 1_800_000,
    gracePeriodMs: 0,
    ...options,
  }).run(abort.signal);
  stop = async () => {
    stop = undefined;
    abort.abort();
    await running;
  };
}

async function make(holds: string[]): Promise<string> {
  const name = `gadget-${randomBytes(4).toString("hex")}`;
  const metadata = { name, namespace: cluster.namespace };
  await cluster.client.create({ apiVersion: "test.kindstack.dev/v1", kind: "Gadget", metadata, spec: { holds } });
  return name;
}

const find = (name: string) => known(cluster.client.get(type, name, cluster.namespace));
const edit = (name: string, patch: object) => cluster.client.mergePatch(type, name, cluster.namespace, patch);
const remove = (name: string) => cluster.client.delete(type, name, cluster.namespace);
const reasonOf = (object: LiveObject | undefined, condition: string) =>
  object && findCondition(statusOf(object).conditions, condition)?.reason;
const becomes = (name: string, condition: string, reason: string) =>
  expect.poll(async () => reasonOf(await find(name), condition)).toBe(reason);
const isGone = (name: string) => expect.poll(() => find(name)).toBeUndefined();

it("what a user took off an object comes back: the finalizer without an update, a status with one", async () => {
  start();
  const name = await make([]);
  await becomes(name, "Ready", "Succeeded");
  await edit(name, { metadata: { finalizers: null } });
  await expect.poll(async () => (await find(name))?.metadata.finalizers).toEqual([FINALIZER]);
  expect(calls).toEqual(["up"]);

  const object = (await find(name)) as LiveObject;
  await cluster.client.replaceStatus(object, {});
  await becomes(name, "Ready", "Succeeded");
  await edit(name, { metadata: { finalizers: null } });
  await expect.poll(async () => (await find(name))?.metadata.finalizers).toEqual([FINALIZER]);
});

it("a search for drift does not begin before the last one has ended", async () => {
  let [running, most, searches] = [0, 0, 0];
  findDrift = async () => {
    most = Math.max(most, ++running);
    await delay(100); // five intervals
    running--;
    searches++;
    return noDrift();
  };
  start();
  await becomes(await make([]), "Ready", "Succeeded");
  await expect.poll(() => searches).toBeGreaterThan(2);
  expect(most).toBe(1);
  findDrift = noDrift;
});

it("what two objects claim is free as well when the first's finalizer was removed by force", async () => {
  start();
  const first = await make(["the-only-one"]);
  await becomes(first, "Ready", "Succeeded");
  await edit(first, { metadata: { annotations: { [PAUSED_ANNOTATION]: "true" }, finalizers: [] } });
  await remove(first);
  await isGone(first);
  expect(calls).toEqual(["up"]);
  const second = await make(["the-only-one"]);
  await becomes(second, "Ready", "Succeeded");
  expect((await find(second))?.metadata.finalizers).toEqual([FINALIZER]);
});

it("an object that refers to others is updated when they come, change and go, and its program is given what they are", async () => {
  const given: unknown[] = [];
  const name = ({ spec }: { spec: { holds: string[] } }) => spec.holds[0];
  const referring: AnyKind = {
    ...gadget,
    program: (_, { read }) => void given.push(read<{ data: unknown }>("config")?.data),
    capabilities: { reads: { config: { apiVersion: "v1", kind: "ConfigMap", name } } },
  };
  const run = async (_: UpOptions, program: Program) => {
    await program();
    return upResult();
  };
  start(run, [referring]);
  await becomes(await make(["config"]), "Ready", "Succeeded");
  await cluster.client.create(cluster.configMap("other", { a: "0" }));
  await cluster.client.create(cluster.configMap("config", { a: "1" }));
  await expect.poll(() => given).toEqual([undefined, { a: "1" }]);
  await cluster.edit("config", { data: { a: "2" } });
  await expect.poll(() => given).toEqual([undefined, { a: "1" }, { a: "2" }]);
  await cluster.client.delete({ apiVersion: "v1", kind: "ConfigMap" }, "config", cluster.namespace);
  await expect.poll(() => given).toEqual([undefined, { a: "1" }, { a: "2" }, undefined]);
});

describe("a type that the operator may not read any more", () => {
  it("leaves it unknown whether what objects made has drifted, until it may again", async () => {
    const user = `${cluster.namespace}-operator`;
    const everything = { verbs: ["*"], resources: ["*"] };
    await grant(user, "its-own", ["test.kindstack.dev", "kindstack.dev", "events.k8s.io"], everything);
    const reads = { verbs: ["get", "list", "watch"] };
    await grant(user, "namespaces", [""], { ...reads, resources: ["namespaces"] });
    const revoke = await grant(user, "config-maps", [""], { ...reads, resources: ["configmaps"] });
    const client = cluster.as(user);
    start(undefined, [{ ...gadget, owns: [CONFIG_MAP], capabilities: {} }], { client, relistIntervalMs: 1_500 });
    const name = await make([]);
    await becomes(name, "Synced", "Succeeded");

    await revoke();
    await becomes(name, "DriftUnknown", "Forbidden");
    const conditions = statusOf((await find(name)) as LiveObject).conditions;
    expect(findCondition(conditions, "DriftUnknown")?.message).toContain("configmaps is forbidden");
    expect(findCondition(conditions, "Ready")?.status).toBe("True");

    await grant(user, "config-maps", [""], { ...reads, resources: ["configmaps"] });
    await expect
      .poll(async () => findCondition(statusOf((await find(name)) as LiveObject).conditions, "DriftUnknown"))
      .toBeUndefined();
  });

  const granted: Manifest[] = [];
  afterEach(async () => {
    await stop?.();
    for (const { apiVersion, kind, metadata } of granted.splice(0)) {
      await cluster.client.delete({ apiVersion, kind }, metadata.name ?? "");
    }
  });

  /** Gives a user a right. @returns what takes it away */
  async function grant(
    user: string,
    right: string,
    apiGroups: string[],
    rule: object,
  ): Promise<() => Promise<unknown>> {
    const name = `${user}-${right}`;
    const [role, binding] = roleFor([userNamed(user)], [{ apiGroups, ...rule }], { name });
    granted.push(role, binding);
    for (const manifest of [role, binding]) await cluster.client.apply(manifest);
    return () => cluster.client.delete(binding, name);
  }
});

describe("a type that the API server does not serve", () => {
  const missing = { apiVersion: "later.kindstack.dev/v1", kind: "Part" };
  const names = { group: "later.kindstack.dev", kind: "Part", plural: "parts", singular: "part" };
  const part: AnyKind = { ...gadget, ...names, capabilities: {} };
  /** What an update ends with that needs the type. */
  const applied = async () => {
    try {
      const metadata = { name: "a", namespace: cluster.namespace };
      await cluster.client.apply({ ...missing, metadata, spec: { holds: [] } }, { dryRun: true });
      return upResult();
    } catch (error) {
      return upResult({ result: "failed" }, { failures: [failureOf(error)] });
    }
  };
  const remove = async () => {
    const crds = { apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition" };
    await cluster.client.delete(crds, "parts.later.kindstack.dev");
  };

  it("stops the objects that need it until it is served, and nothing else", async () => {
    const owning: AnyKind = { ...gadget, owns: [missing] };
    const watching = {
      ...part,
      capabilities: { watches: [{ ...missing, labelSelector: "", selectorOf: () => "", keysOf: () => [] }] },
    };
    try {
      start(applied, [owning, watching]);
      const name = await make([]);
      await becomes(name, "Stalled", "UnknownKind");
      await installKinds(cluster.client, [part]);
      await becomes(name, "Ready", "Succeeded");
    } finally {
      await stop?.();
      await remove();
    }
  });
});

describe("a mode that a namespace sets", () => {
  const setMode = async (mode: string | null) =>
    cluster.client.mergePatch(await cluster.client.resourceType("v1", "Namespace"), cluster.namespace, undefined, {
      metadata: { annotations: { [MODE_ANNOTATION]: mode } },
    });
  afterEach(() => setMode(null));

  it("holds from then on for its objects, and ends as soon as it is removed", async () => {
    await setMode("Observe"); // before the manager starts: it sees a later one by a watch
    start();
    planned = [
      { urn: "urn:pulumi:s::kindstack::t:Row::row", type: "t:Row", name: "row", operation: "create", inputs: {} },
    ];
    const name = await make([]);
    await becomes(name, "Synced", "Observed");
    const observed = (await find(name)) as LiveObject;
    expect(observed.metadata.finalizers).toBeUndefined();
    expect(statusOf(observed)).toMatchObject({ mode: "Observe" });
    expect(calls).toEqual(["preview"]);

    await setMode(null);
    await becomes(name, "Synced", "Succeeded");
    expect(calls).toEqual(["preview", "up"]);
    await setMode("observe ");
    await expect.poll(async () => statusOf((await find(name)) as LiveObject).mode).toBe("Observe");
    await remove(name);
    await isGone(name);
    expect(calls.slice(2)).toEqual(["preview", "release", "destroy"]);
  });

  /** Sets what the policy refuses, as it was set before the policy was installed. */
  async function setBeforePolicy(mode: string): Promise<void> {
    const type = { apiVersion: "admissionregistration.k8s.io/v1", kind: "ValidatingAdmissionPolicyBinding" };
    const binding = await known(cluster.client.get(type, "mode.namespaces.kindstack.dev"));
    if (binding === undefined) throw new Error("there is no policy of modes on namespaces");
    const { name, labels } = binding.metadata;
    await cluster.client.delete(type, name);
    await eventually(() => setMode(mode));
    await cluster.client.create({ ...type, metadata: { name, ...(labels && { labels }) }, spec: binding.spec });
  }

  it("pauses them while it cannot be understood", async () => {
    await setBeforePolicy("Obsreve");
    start();
    const name = await make([]);
    await becomes(name, "Paused", "InvalidAnnotation");
    const message = findCondition(statusOf((await find(name)) as LiveObject).conditions, "Paused")?.message;
    expect(message).toMatch(
      `of the namespace ${cluster.namespace}: "Obsreve" must be Apply or ProposeDestructive or Propose or Observe`,
    );
    expect(calls).toEqual([]);
  });
});

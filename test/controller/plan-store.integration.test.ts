import { createSecretKey } from "node:crypto";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { review } from "../../providers/kubernetes/access-review";
import { known, type LiveObject } from "../../providers/kubernetes/client";
import { InformerFactory } from "../../src/cache/informer-factory";
import { PlanStore } from "../../src/controller/plan-store";
import { installKinds } from "../../src/operator/install";
import { createMetrics } from "../../src/telemetry/metrics";
import { APPROVAL_TYPE, type ApprovalSpec, MAX_APPROVED_PLANS } from "../../stacks/contract/approval";
import { type AnyKind, kindName, kindType } from "../../stacks/contract/kind";
import { objectKey } from "../../stacks/contract/object";
import { PLAN_TYPE, type PlanSpec, type PlanStatus, planName } from "../../stacks/contract/plan";
import { podSet } from "../../stacks/kinds/podset/kind";
import { tenant } from "../../stacks/kinds/tenant/kind";
import { NAMESPACE, TestCluster } from "../providers/kubernetes/test-cluster";
import { digest, planSpec } from "./plans";

const logger = pino({ level: "silent" });
const stop = new AbortController();
const cluster = TestCluster.use();
let operators: string;
let store: PlanStore;
let changed: string[];

beforeAll(async () => {
  await installKinds(cluster.client, [podSet, tenant]);
  operators = `${cluster.namespace}-operator`;
  await cluster.client.create({ apiVersion: "v1", kind: "Namespace", metadata: { name: operators } });
  const { client } = cluster;
  const informers = new InformerFactory({ client, logger, relistIntervalMs: 1_800_000, metrics: createMetrics() });
  const planKey = async () => createSecretKey(Buffer.alloc(32));
  const onChange = (object: PlanSpec["object"]) => void changed.push(objectKey(object));
  changed = [];
  store = (await PlanStore.open({ client, planKey, informers, namespace: operators, onChange, logger })) as PlanStore;
  await informers.start(stop.signal).synced;
});
afterAll(async () => {
  stop.abort();
  await cluster.client.delete(NAMESPACE, operators);
});

async function makePodSet(name: string, namespace = cluster.namespace): Promise<LiveObject> {
  return cluster.client.create({ ...kindType(podSet), metadata: { name, namespace }, spec: { replicas: 1 } });
}

function planOf(object: LiveObject, changes: Partial<PlanSpec> = {}): PlanSpec {
  const { name, namespace, uid, generation = 1 } = object.metadata;
  const { apiVersion, kind } = object;
  const planned = { apiVersion, kind, name, uid, generation, ...(namespace !== undefined && { namespace }) };
  return planSpec(planned, changes);
}

async function decide(namespace: string, spec: Partial<ApprovalSpec>): Promise<LiveObject> {
  type Status = { userInfo: { username: string } };
  const status = await review<Status>(cluster.client, "authentication.k8s.io/v1", "SelfSubjectReview", {});
  const metadata = { generateName: "a-", namespace };
  return cluster.client.create({ ...APPROVAL_TYPE, metadata, spec: { approver: status?.userInfo.username, ...spec } });
}

const find = (object: LiveObject, digest: string) => store.decisionOn(podSet, object, digest);
const pending = { state: "Pending" } as const;
const write = (object: LiveObject, spec: PlanSpec, status: PlanStatus = pending, kind: AnyKind = podSet) =>
  store.write({ client: cluster.client, kind }, object, spec, status, { isTombstone: false });

describe("a plan", () => {
  it("is an object in its object's namespace, which owns it; one of the same digest keeps its cause", async () => {
    const object = await makePodSet("written");
    const spec = planOf(object);
    await write(object, spec);
    expect(store.get(podSet, object)).toMatchObject({ spec, status: pending }); // before any event
    const first = store.get(podSet, object);
    expect(first?.metadata).toMatchObject({
      name: planName(podSet, object.metadata),
      namespace: cluster.namespace,
      ownerReferences: [{ kind: "PodSet", name: "written", uid: object.metadata.uid }],
    });

    const cause = { reason: "Drifted", at: "2026-11-25T13:00:00Z" };
    await write(object, { ...spec, cause });
    expect(store.get(podSet, object)?.metadata.resourceVersion).toBe(first?.metadata.resourceVersion);

    const next = planOf(object, { cause, steps: [] });
    await write(object, next, { ...pending, message: "another" });
    const plans = await cluster.client.list(PLAN_TYPE, { namespace: cluster.namespace });
    expect(plans.items.filter(({ metadata }) => metadata.name === first?.metadata.name)).toMatchObject([
      { spec: next, status: { state: "Pending", message: "another" } },
    ]);

    await store.remove({ client: cluster.client, kind: podSet }, object);
    expect(store.get(podSet, object)).toBeUndefined();
    await store.remove({ client: cluster.client, kind: podSet }, object);
    await write(object, next); // made again, whatever the cache shows
    const name = planName(podSet, object.metadata);
    expect(await known(cluster.client.get(PLAN_TYPE, name, cluster.namespace))).toMatchObject({ spec: next });
  });

  it("is told of when others delete it", async () => {
    const object = await makePodSet("deleted");
    await write(object, planOf(object));
    await cluster.client.delete(PLAN_TYPE, planName(podSet, object.metadata), cluster.namespace);
    await expect.poll(() => changed).toContain(`${cluster.namespace}/deleted`);
    expect(store.get(podSet, object)).toBeUndefined();
  });

  it("of what has no namespace is in the operator's, and decided there", async () => {
    const metadata = { name: `${cluster.namespace}-tenant` };
    const adminEmail = "a@example.com";
    const spec = { adminEmail, adminGroups: ["a"], userGroups: ["u"], namespaces: ["n"] };
    const object = await cluster.client.create({ ...kindType(tenant), metadata, spec });
    const plan = planOf(object);
    await write(object, plan, pending, tenant);
    expect(store.get(tenant, object)?.metadata).toMatchObject({ namespace: operators });
    expect(store.get(tenant, object)?.metadata.ownerReferences).toMatchObject([{ uid: object.metadata.uid }]);

    const approved = { object: { kind: kindName(tenant), name: metadata.name }, digest: plan.digest };
    await decide(cluster.namespace, approved);
    await decide(operators, approved);
    await expect.poll(() => changed).toContain(metadata.name);
    expect(store.decisionOn(tenant, object, plan.digest)).toMatchObject({ decision: "Approve", digest: plan.digest });
    await store.remove({ client: cluster.client, kind: tenant }, object);
    await cluster.client.delete(kindType(tenant), metadata.name);
  });

  it("of an object in a namespace that ends is in the operator's, and decided there", async () => {
    const ending = `${cluster.namespace}-ending`;
    await cluster.client.create({ apiVersion: "v1", kind: "Namespace", metadata: { name: ending, finalizers: [] } });
    const object = await makePodSet("ending", ending);
    const finalizers = ["example.com/holds"];
    await cluster.client.mergePatch(kindType(podSet), "ending", ending, { metadata: { finalizers } });
    await cluster.client.delete(NAMESPACE, ending);
    const plan = planOf(object);
    await write(object, plan);
    expect(store.get(podSet, object)?.metadata).toMatchObject({ namespace: operators });
    expect(store.get(podSet, object)?.metadata.ownerReferences).toBeUndefined();

    await decide(operators, { object: { kind: kindName(podSet), name: "ending" }, digest: plan.digest });
    expect(find(object, plan.digest)).toBeUndefined(); // of another object, without the namespace
    const named = { kind: kindName(podSet), namespace: ending, name: "ending" };
    await decide(operators, { object: named, digest: plan.digest });
    await expect.poll(() => find(object, plan.digest)).toMatchObject({ decision: "Approve" });
    await cluster.client.mergePatch(kindType(podSet), "ending", ending, { metadata: { finalizers: [] } });
  });
});

describe("a decision", () => {
  it("holds for the object and the digest that it names, or for all that it lists in its namespace", async () => {
    const [one, other] = [await makePodSet("one"), await makePodSet("other")];
    const plan = planOf(one);
    await decide(cluster.namespace, { object: { kind: kindName(podSet), name: "one" }, digest: plan.digest });
    await expect.poll(() => find(one, plan.digest)).toMatchObject({ decision: "Approve" });
    expect(find(one, digest())).toBeUndefined();
    expect(find(other, plan.digest)).toBeUndefined();

    const digests: [string, string] = [digest(), digest()];
    await decide(operators, { digests });
    const rejected = { decision: "Reject", reason: "not on a Friday" } as const;
    const rejection = await decide(cluster.namespace, { digests, ...rejected });
    await expect.poll(() => find(one, digests[0])).toMatchObject(rejected);
    expect(find(other, digests[1])).toMatchObject({ decision: "Reject" });
    const approval = await decide(cluster.namespace, { digests: [digests[0]], decision: "Approve" });
    const isNewer = approval.metadata.creationTimestamp !== rejection.metadata.creationTimestamp;
    // In the same second the rejection holds, later the newer decision.
    await expect.poll(() => find(one, digests[0])?.decision).toBe(isNewer ? "Approve" : "Reject");
    expect(find(other, digests[1])?.decision).toBe("Reject");
  });

  it("names a thousand plans, and each of them holds", async () => {
    const digests = Array.from({ length: MAX_APPROVED_PLANS }, digest);
    const object = await makePodSet("many");
    await decide(cluster.namespace, { digests });
    await expect.poll(() => find(object, digests.at(-1) ?? "")).toMatchObject({ decision: "Approve" });
    expect(digests.filter((one) => find(object, one) === undefined)).toEqual([]);
    const tooMany = decide(cluster.namespace, { digests: [...digests, digest()] });
    await expect(tooMany).rejects.toThrow("must have at most 1000");
  });

  it("of an author is told and ignored, of one plan or several, unless it is a rejection or another user has approved", async () => {
    const object = await makePodSet("authored");
    const [{ digest: own }, listed] = [planOf(object), digest()];
    const named = { kind: kindName(podSet), name: "authored" };
    const { spec } = await decide(cluster.namespace, { object: named, digest: own });
    const { approver } = spec as ApprovalSpec;
    const by = (digest: string, ...authors: string[]) => store.decisionOn(podSet, object, digest, authors)?.decision;
    await expect.poll(() => by(own, "olga")).toBe("Approve");
    expect(by(own, "olga", approver)).toBe("Ignored");
    expect(by(own, "olga", `${approver}2`)).toBe("Approve");
    expect(by(own)).toBe("Ignored"); // not known who they are
    await decide(cluster.namespace, { digests: [digest(), listed] });
    await expect.poll(() => find(object, listed)?.decision).toBe("Approve");
    expect(by(listed, approver)).toBe("Ignored");
    await decide(cluster.namespace, { digests: [listed], decision: "Reject" });
    await expect.poll(() => by(listed, approver)).toBe("Reject");
  });

  it("is told of, also where it came before the plan", async () => {
    const object = await makePodSet("early");
    const plan = planOf(object);
    await decide(cluster.namespace, { object: { kind: kindName(podSet), name: "early" }, digest: plan.digest });
    await expect.poll(() => find(object, plan.digest)).toMatchObject({ decision: "Approve" });
    await write(object, plan);
    await expect.poll(() => changed).toContain(`${cluster.namespace}/early`);
  });

  it("ends when it expires, and is removed", async () => {
    const object = await makePodSet("late");
    const listed = digest();
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    const { metadata } = await decide(cluster.namespace, { digests: [listed], expiresAt });
    await expect.poll(() => find(object, listed)).toMatchObject({ decision: "Approve" });
    using _ = vi.spyOn(Date, "now").mockReturnValue(Date.parse(expiresAt));
    expect(find(object, listed)).toBeUndefined();
    const sweep = new AbortController();
    const ended = store.sweep(sweep.signal);
    await expect.poll(() => known(cluster.client.get(APPROVAL_TYPE, metadata.name, cluster.namespace))).toBeUndefined();
    sweep.abort();
    await ended;
  });
});

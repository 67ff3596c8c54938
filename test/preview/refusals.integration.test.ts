import { readFile } from "node:fs/promises";
import https from "node:https";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import Type from "typebox";
import { Agent, request } from "undici";
import { beforeAll, describe, expect, it } from "vitest";
import { known, type LiveObject, type Manifest } from "../../providers/kubernetes/client";
import { installKinds } from "../../src/operator/install";
import { conflictFinder } from "../../src/plan/obstacles";
import { ClusterView } from "../../src/preview/cluster-view";
import { checkPlans } from "../../src/preview/dry-run";
import { preview, selectCandidates } from "../../src/preview/preview";
import { previewObject } from "../../src/preview/preview-object";
import { eventually } from "../../src/testing/eventually";
import { defineKind } from "../../stacks/contract/kind";
import { controlPlane } from "../control-plane";
import { TestCluster } from "../providers/kubernetes/test-cluster";
import { TestAuthority } from "../tls/test-authority";
import { bundle, type Part, PREVIEW_KIND, part } from "./bundle";
import { openTestEngine } from "./engine";

/** Each of its objects claims a number in another system, which has each once. */
const extension = defineKind({
  ...PREVIEW_KIND,
  ...{ kind: "Extension", plural: "extensions", singular: "extension" },
  spec: Type.Object({ number: Type.Integer() }),
  owns: [],
  program: () => {},
  capabilities: { claims: { of: ({ spec }) => [`pbx/${spec.number}`] } },
});
const KINDS = [bundle, extension];
const ADMISSION = "admissionregistration.k8s.io/v1";

const cluster = TestCluster.use();
let stacks: Awaited<ReturnType<typeof openTestEngine>>;
let webhooks: https.Server;
const webhookConfiguration = { apiVersion: ADMISSION, kind: "ValidatingWebhookConfiguration" };

beforeAll(async () => {
  await installKinds(cluster.client, KINDS);
  stacks = await openTestEngine();
  const authority = await TestAuthority.create();
  const { certificate: cert, key } = await authority.server();
  webhooks = https.createServer({ cert, key }, async (incoming, response) => {
    if (incoming.url?.startsWith("/hang")) return;
    const { uid } = (JSON.parse(await text(incoming)) as { request: { uid: string } }).request;
    const answer = { uid, allowed: false, status: { code: 403, message: "not on Wednesdays" } };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response: answer }));
  });
  await new Promise<void>((resolve) => webhooks.listen(0, "127.0.0.1", resolve));
  const { port } = webhooks.address() as AddressInfo;
  const webhook = (label: string, sideEffects: string) => ({
    name: `${label}.preview.kindstack.dev`,
    admissionReviewVersions: ["v1"],
    sideEffects,
    timeoutSeconds: 30,
    clientConfig: {
      url: `https://127.0.0.1:${port}/${label}`,
      caBundle: Buffer.from(authority.own.certificate).toString("base64"),
    },
    namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": cluster.namespace } },
    objectSelector: { matchLabels: { label } },
    rules: [{ apiGroups: [""], apiVersions: ["v1"], resources: ["configmaps"], operations: ["CREATE", "UPDATE"] }],
  });
  await cluster.client.create({
    ...webhookConfiguration,
    metadata: { name: cluster.namespace },
    webhooks: [webhook("deny", "None"), webhook("hang", "None"), webhook("effects", "NoneOnDryRun")],
  });
  await storeAsInOldClusters((text) => text.replace("NoneOnDryRun", "Some"));
  return async () => {
    const type = await cluster.client.resourceType(ADMISSION, webhookConfiguration.kind);
    await cluster.client.delete(type, cluster.namespace);
    webhooks.closeAllConnections();
    webhooks.close();
    await stacks.close();
  };
});

/** Writes the webhooks to etcd, past the validation of the API server, which takes less than it used to take. */
async function storeAsInOldClusters(change: (text: string) => string): Promise<void> {
  const directory = dirname(controlPlane().kubeconfig);
  const read = (file: string) => readFile(join(directory, file), "utf8");
  const [ca, cert, key] = await Promise.all(
    ["etcd-ca.crt", "apiserver-etcd-client.crt", "apiserver-etcd-client.key"].map((name) => read(join("pki", name))),
  );
  const { etcd } = JSON.parse(await read("ports.json")) as { etcd: number };
  const type = await cluster.client.resourceType(ADMISSION, webhookConfiguration.kind);
  const live = { ...webhookConfiguration, ...(await known(cluster.client.get(type, cluster.namespace))) };
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  const { statusCode } = await request(`https://127.0.0.1:${etcd}/v3/kv/put`, {
    method: "POST",
    dispatcher: new Agent({ connect: { ca, cert, key } }),
    body: JSON.stringify({
      key: base64(`/registry/validatingwebhookconfigurations/${cluster.namespace}`),
      value: base64(change(JSON.stringify(live))),
    }),
  });
  expect(statusCode).toBe(200);
  const seen = async () => JSON.stringify(await known(cluster.client.get(type, cluster.namespace)));
  await eventually(async () => expect(await seen()).toContain('"sideEffects":"Some"'));
}

const manifestOf = (kind: string, name: string, spec: object) => ({
  apiVersion: "preview.kindstack.dev/v1",
  kind,
  metadata: { name, namespace: cluster.namespace },
  spec,
});
const bundleOf = (...parts: Part[]) => manifestOf("Bundle", "bundle", { parts });
const extensionOf = (name: string, number: number) => manifestOf("Extension", name, { number });

function select(...manifests: Manifest[]) {
  return selectCandidates(KINDS, "default", {
    objects: manifests.map((manifest, index) => ({ file: `${index}.yaml`, manifest: manifest as LiveObject })),
    problems: [],
  });
}

async function look(...manifests: Manifest[]) {
  const view = await ClusterView.open(cluster.client);
  return preview({ engine: stacks.engine, cluster: view, refresh: false }, select(...manifests));
}

/** A quota of the namespace that the API server knows of, until it is taken back. */
async function limit(hard: Record<string, string>, count: (used: number) => number = (used) => used) {
  const metadata = { name: "few", namespace: cluster.namespace };
  const quota = { apiVersion: "v1", kind: "ResourceQuota", metadata };
  const type = await cluster.client.resourceType("v1", "ResourceQuota");
  const find = () => known(cluster.client.get(type, "few", cluster.namespace));
  const settled = () => expect.poll(async () => JSON.stringify((await find())?.status)).toContain("used");
  await cluster.client.apply({ ...quota, spec: { hard } });
  await settled();
  const { used = {} } = ((await find())?.status ?? {}) as { used?: Record<string, string> };
  const limits = Object.fromEntries(Object.keys(hard).map((name) => [name, String(count(Number(used[name])))]));
  await cluster.client.apply({ ...quota, spec: { hard: limits } });
  await expect.poll(async () => (await find())?.status).toMatchObject({ hard: limits });
  return { [Symbol.asyncDispose]: async () => void (await cluster.client.delete(type, "few", cluster.namespace)) };
}

describe("what the API server will refuse is a failure", () => {
  it("by a quota that is used up", async () => {
    await using _ = await limit({ configmaps: "100" });
    const { objects } = await look(bundleOf(part("one")));
    const errors = [expect.stringMatching(/^one: .*exceeded quota: few/)];
    expect(objects).toMatchObject([{ action: "failed", errors, resources: [{ checked: true }] }]);
  });

  it("by a quota that each resource fits into, and all together do not", async () => {
    await using _ = await limit({ configmaps: "100" }, (used) => used + 2);
    const fits = await look(bundleOf(part("one"), part("two")));
    const exceeds = await look(bundleOf(part("one"), part("two"), part("three")));

    expect(fits.objects).toMatchObject([{ action: "create", errors: [] }]);
    const error = `the ResourceQuota few of the namespace ${cluster.namespace} allows 2 more configmaps, and 3 are created`;
    expect(exceeds.objects).toMatchObject([{ action: "failed", errors: [error] }]);
  });

  it("by a webhook that denies it", async () => {
    const { objects } = await look(bundleOf(part("one", { label: "deny" })));
    expect(objects).toMatchObject([{ action: "failed", errors: [expect.stringContaining("not on Wednesdays")] }]);
  });
});

describe("what could not be asked is not checked, and the report says why", () => {
  it("where a webhook has effects that forbid dry runs, as one of a cluster's early days", async () => {
    const { objects } = await look(bundleOf(part("one", { label: "effects" }), part("two")));
    const notChecked = 'admission webhook "effects.preview.kindstack.dev" does not support dry run';
    const resources = [
      { name: "one", notChecked },
      { name: "two", checked: true },
    ];
    expect(objects).toMatchObject([{ action: "create", errors: [], resources }]);
  });

  it("where a webhook does not answer in time, and for all that is left when all of the time is over", async () => {
    const view = await ClusterView.open(cluster.client);
    const hanging = Array.from({ length: 9 }, (_, index) => part(`hangs-${index}`, { label: "hang" }));
    const { candidates } = select(bundleOf(...hanging));
    const options = { engine: stacks.engine, cluster: view, refresh: false };
    const planned = await previewObject(options, conflictFinder(), candidates[0] as (typeof candidates)[0]);
    await checkPlans([planned], view, { namespaces: new Set(), types: new Set() }, { oneMs: 200, allMs: 300 });

    const reasons = planned.plan.resources.map(({ notChecked }) => notChecked);
    expect(planned.plan).toMatchObject({ action: "create", errors: [] });
    expect(reasons.filter((why) => why === "the dry run took too long").length).toBeGreaterThan(0);
    expect(new Set(reasons)).toEqual(new Set(["the dry run took too long"]));
  });
});

describe("a claim on an id of another system", () => {
  it("fails where two files have it", async () => {
    const { objects } = await look(extensionOf("one", 7), extensionOf("two", 7), extensionOf("three", 8));
    expect(objects.map(({ action, errors }) => [action, ...errors])).toEqual([
      ["failed", `Conflict: pbx/7 is also claimed by Extension.preview.kindstack.dev/${cluster.namespace}/two`],
      ["failed", `Conflict: pbx/7 is also claimed by Extension.preview.kindstack.dev/${cluster.namespace}/one`],
      ["create"],
    ]);
  });

  it("fails where an object of the cluster holds it that is in no file; what that gives up is free", async () => {
    const type = await cluster.client.resourceType("preview.kindstack.dev/v1", "Extension");
    await cluster.client.apply(extensionOf("holder", 9), { fieldManager: "kubectl" });
    const path = `/apis/preview.kindstack.dev/v1/namespaces/${cluster.namespace}/extensions/holder/status`;
    const contentType = "application/merge-patch+json";
    const body = { status: { stack: { name: "s", program: "p" } } };
    await cluster.client.json("PATCH", path, { body, contentType });
    expect((await known(cluster.client.get(type, "holder", cluster.namespace)))?.status).toMatchObject(body.status);
    const heir = extensionOf("heir", 9);

    const errors = [expect.stringMatching(/^Conflict: pbx\/9 is also claimed by .*\/holder$/)];
    expect((await look(heir)).objects).toMatchObject([{ action: "failed", errors }]);
    const given = await look(heir, extensionOf("holder", 10));
    expect(given.objects.map(({ action }) => action)).toEqual(["create", "unchecked"]); // its stack is not here
  });
});

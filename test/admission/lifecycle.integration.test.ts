import { spawn } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import https from "node:https";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import tls from "node:tls";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { userConfig } from "../../bench/users";
import { KubernetesClient, known, type LiveObject, type ObjectType } from "../../providers/kubernetes/client";
import { apiServerFlags } from "../../src/dev/flags";
import { layoutOf } from "../../src/dev/layout";
import { preparePki } from "../../src/dev/pki";
import { freePort } from "../../src/dev/ports";
import { eventually } from "../../src/testing/eventually";
import { resolveBinary } from "../../src/toolchain/resolve";
import { CERTIFICATE_SECRET } from "../../stacks/contract/admission";
import { obeyedAnnotations } from "../../stacks/contract/annotations";
import { DEFAULT_USER_GROUP } from "../../stacks/kinds/capsule-tenant/labels";
import { controlPlane } from "../control-plane";
import { testDirectory } from "../directories";
import { TestAuthority } from "../tls/test-authority";
import { removeAdmission } from "./leftovers";
import {
  at,
  create,
  expectAcceptance,
  expectRefusal,
  namespaceOf,
  TENANT,
  TestAdmission,
  uniqueName,
} from "./test-admission";

const test = new TestAdmission(controlPlane());
const oil = uniqueName("oil");
const alice = uniqueName("alice");
const PROVISIONER = "capsule-namespace-provisioner";
const WEBHOOKS = "tenants.capsule.clastix.io";
const [ADMISSION, RBAC] = ["admissionregistration.k8s.io/v1", "rbac.authorization.k8s.io/v1"];
const POLICY = { apiVersion: ADMISSION, kind: "ValidatingAdmissionPolicy" };
const CONFIGURATION = { apiVersion: ADMISSION, kind: "MutatingWebhookConfiguration" };
const BINDING = { apiVersion: RBAC, kind: "ClusterRoleBinding" };
const ROLE = { apiVersion: RBAC, kind: "ClusterRole" };
const SECRET = { apiVersion: "v1", kind: "Secret" };
let asAlice: KubernetesClient;

beforeAll(async () => {
  await test.open();
  await test.tenant(oil, { owner: { kind: "User", name: alice }, namespaceQuota: 1000 });
  asAlice = await test.user(alice);
});
afterAll(() => test.close());
afterEach(async () => {
  vi.unstubAllEnvs();
  await test.stop();
  // One test's CA lasts for seconds: the next would begin with it, and find it expired on a slow machine.
  await test.client.delete(SECRET, CERTIFICATE_SECRET, test.namespace);
});

const find = (type: ObjectType, name: string) => known(test.client.get(type, name));
const dryCreation = () => create(asAlice, namespaceOf(uniqueName("dry")), true);
type Webhooks = { webhooks: { clientConfig: { caBundle: string } }[] };
const serial = (port: number) =>
  new Promise<string>((resolve, reject) => {
    const socket = tls.connect({ port, host: "127.0.0.1", rejectUnauthorized: false }, () => {
      resolve(new X509Certificate(socket.getPeerCertificate().raw).serialNumber);
      socket.destroy();
    });
    socket.on("error", reject);
  });

it("the certificate and its CA are changed several times under load without one refused request", async () => {
  const server = await test.serve({
    // A third of the serving certificate's life, less a second as such times are cut to seconds, is left for a renewal.
    certificate: { lifetimes: { caMs: 12_000, servingMs: 6_000 }, pollMs: 100, propagationMs: 1_000 },
  });
  const serials = new Set<string>();
  const authorities = new Set<string>();
  const failures: string[] = [];
  let requests = 0;
  let stopped = false;
  const load = Array.from({ length: 4 }, async () => {
    while (!stopped) {
      await dryCreation().catch((error: unknown) => failures.push(String(error)));
      requests++;
    }
  });
  const caBundle = async () => {
    const { webhooks } = (await find(CONFIGURATION, WEBHOOKS)) as unknown as Webhooks;
    return Buffer.from(webhooks[0]?.clientConfig.caBundle ?? "", "base64").toString();
  };

  try {
    await eventually(async () => {
      serials.add(await serial(server.port));
      for (const one of (await caBundle()).split(/(?<=-----END CERTIFICATE-----\n)/)) authorities.add(one);
      expect(serials.size).toBeGreaterThanOrEqual(4);
      expect(authorities.size).toBeGreaterThanOrEqual(3);
      expect(requests).toBeGreaterThan(100);
    });
  } finally {
    stopped = true; // the load would outlive the test
    await Promise.all(load);
  }

  expect(failures).toEqual([]);
});

it("while no operator answers, owners' namespaces are refused, everybody else continues, and a new operator takes over", async () => {
  await test.serve();
  await dryCreation();
  await test.stop();

  await expectRefusal(asAlice, namespaceOf(uniqueName("refused")), "failed calling webhook");
  await expectAcceptance(test.client, namespaceOf(uniqueName("plain")));
  await expectAcceptance(
    test.client,
    at("kube-system", { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "x" } }),
  );

  await test.serve();
  await eventually(dryCreation);
});

describe("the objects of admission", () => {
  it("are repaired when a user changes or deletes them", async () => {
    await test.serve();
    const subjects = async () => (await find(BINDING, PROVISIONER))?.subjects;
    const group = { apiGroup: "rbac.authorization.k8s.io", kind: "Group", name: DEFAULT_USER_GROUP };
    expect(await subjects()).toEqual([group]);

    await edit("clusterrolebindings", PROVISIONER, { subjects: [{ ...group, name: "others" }] });
    await eventually(async () => expect(await subjects()).toEqual([group]));
    await edit("clusterroles", PROVISIONER, { rules: [{ apiGroups: ["*"], resources: ["*"], verbs: ["*"] }] });
    const rules = [{ apiGroups: [""], resources: ["namespaces"], verbs: ["create", "get", "patch"] }];
    await eventually(async () => expect(await find(ROLE, PROVISIONER)).toMatchObject({ rules }));
    await edit("mutatingwebhookconfigurations", WEBHOOKS, { webhooks: [] });
    await eventually(async () => expect((await find(CONFIGURATION, WEBHOOKS))?.webhooks).toHaveLength(3));
    const policySpec = async () => (await find(POLICY, "capsule-namespaces"))?.spec;
    const spec = await policySpec();
    await test.client.delete(POLICY, "capsule-namespaces");
    await eventually(async () => expect(await policySpec()).toEqual(spec));
    await test.client.delete(BINDING, PROVISIONER);
    await eventually(async () => expect(await subjects()).toEqual([group]));
  });

  it("name a Service where the operator has one, with a path that the API server accepts", async () => {
    const service = { namespace: test.namespace, name: "kindstack", port: 443 };
    await test.start({ location: { service } });

    const named = { clientConfig: { service } };
    expect(await find(CONFIGURATION, WEBHOOKS)).toMatchObject({ webhooks: [named, named, named] });
  });

  it("follow the configured groups: only their members are asked about and may make namespaces", async () => {
    const others = uniqueName("others");
    const asMember = await test.user(alice, others);
    await expect(create(asMember, namespaceOf(uniqueName("no")), true)).rejects.toMatchObject({ status: 403 });
    vi.stubEnv("KINDSTACK_CAPSULE_USER_GROUPS", `${DEFAULT_USER_GROUP}, ${others}`);

    await test.serve();

    await eventually(() => create(asMember, namespaceOf(uniqueName("yes")), true));
    const subjects = [{ name: DEFAULT_USER_GROUP }, { name: others }];
    expect(await find(BINDING, PROVISIONER)).toMatchObject({ subjects });
  });

  /** As `kubectl edit` would. */
  async function edit(plural: string, name: string, patch: object): Promise<void> {
    const group = plural.startsWith("clusterrole") ? RBAC : ADMISSION;
    await test.client.json("PATCH", `/apis/${group}/${plural}/${name}`, {
      query: { fieldManager: "kubectl-edit" },
      body: patch,
      contentType: "application/merge-patch+json",
    });
  }
});

describe("objects of all kinds", () => {
  const spec = { owner: { kind: "User" as const, name: alice } };
  const tenantWith = (annotations: Record<string, string>) => {
    const metadata = { name: uniqueName("annotated"), annotations };
    return { ...TENANT, metadata, spec };
  };
  const annotate = (name: string, annotations: Record<string, string | null>) =>
    test.client.mergePatch(TENANT, name, undefined, { metadata: { annotations } });
  const deletion = (name: string, options: object) =>
    test.client.json("DELETE", `/apis/${TENANT.apiVersion}/tenants/${name}`, {
      body: { apiVersion: "v1", kind: "DeleteOptions", ...options },
    });
  const read = async (name: string) => (await find(TENANT, name))?.metadata;
  const setFinalizers = (name: string, finalizers: string[] | null) =>
    test.client.mergePatch(TENANT, name, undefined, { metadata: { finalizers } });
  /** A Tenant that stays after its deletion. */
  const held = async (prefix: string) => {
    const name = uniqueName(prefix);
    await test.tenant(name, spec);
    await setFinalizers(name, ["example.com/hold"]);
    return name;
  };

  it("are refused with an annotation that cannot be understood, and only when that is what changes", async () => {
    const before = uniqueName("before");
    await removeAdmission(test.client); // that of an earlier test
    await eventually(() => test.tenant(before, spec, { "kindstack.dev/paused": "yes" }));
    await test.serve();
    const misspelled = tenantWith({ "kindstack.dev/deletion-policy": "Retain" });
    const message = 'annotation kindstack.dev/deletion-policy: "Retain" must be Orphan or Delete';
    await eventually(() => expectRefusal(test.client, misspelled, message));
    const unknown = "unknown annotation kindstack.dev/pause; known are kindstack.dev/paused, ";
    await expectRefusal(test.client, tenantWith({ "kindstack.dev/pause": "true" }), unknown);
    const fine = { "kindstack.dev/paused": " True", "kindstack.dev/deletion-policy": "orphan", "example.com/x": "" };
    await create(test.client, tenantWith(fine), true);
    await annotate(before, { note: "other writes go on", "kindstack.dev/reconcile": "any" });
    await expect(annotate(before, { "kindstack.dev/paused": "no" })).rejects.toThrow("must be true or false");
    await annotate(before, { "kindstack.dev/paused": null });
  });

  it("record that their deletion leaves their resources, which is refused while no operator answers", async () => {
    const server = await test.serve();
    const orphaned = await held("orphaned");
    await deletion(orphaned, { propagationPolicy: "Orphan", dryRun: ["All"] });
    expect((await read(orphaned))?.annotations ?? {}).not.toHaveProperty("kindstack.dev/orphaned");
    await server.close();
    await expect(deletion(orphaned, { propagationPolicy: "Orphan" })).rejects.toThrow("orphan.objects.kindstack.dev");
    expect((await read(orphaned))?.deletionTimestamp).toBeUndefined();

    const again = await test.serve();
    const isReleased = async (name: string) =>
      obeyedAnnotations({ metadata: { ...(await read(name)), finalizers: [] } }).releases;
    await deletion(orphaned, { orphanDependents: true });
    await eventually(async () => expect(await isReleased(orphaned)).toBe(true));
    const plain = await held("plain");
    await deletion(plain, { propagationPolicy: "Foreground" });
    expect(await isReleased(plain)).toBe(false);

    // A forged review of such a deletion, by one who knows the object, does nothing to one that is not so deleted.
    const forged = await held("forged");
    for (let reviews = 0; reviews < 3; reviews++) {
      expect(await forgedDeletion(again.port, (await find(TENANT, forged)) as LiveObject)).toBe(200);
    }
    await deletion(forged, { propagationPolicy: "Background" });
    await delay(1_000);
    const left = await read(forged);
    expect(left?.deletionTimestamp).toBeDefined();
    expect(left?.annotations ?? {}).not.toHaveProperty("kindstack.dev/orphaned");
    for (const name of [orphaned, plain, forged]) await setFinalizers(name, null);
  });
});

it("where a CA of API servers is configured, the API server with its certificate is answered, and no other", async () => {
  const [tenant, owner] = [uniqueName("gas"), uniqueName("bob")];
  await test.tenant(tenant, { owner: { kind: "User", name: owner } });
  const directory = path.dirname(controlPlane().kubeconfig);
  const layout = layoutOf(directory);
  const authority = await TestAuthority.create();
  const { certificate, key } = await authority.user("api-server");
  const folder = testDirectory();
  const write = (name: string, content: string | object) => {
    // JSON is YAML, too.
    writeFileSync(path.join(folder, name), typeof content === "string" ? content : JSON.stringify(content));
    return path.join(folder, name);
  };
  const user = { "client-certificate": write("tls.crt", certificate), "client-key": write("tls.key", key) };
  const kubeConfigFile = write("kubeconfig", { apiVersion: "v1", kind: "Config", users: [{ name: "*", user }] });
  const apiVersion = "apiserver.config.k8s.io/v1";
  const configuration = { apiVersion, kind: "WebhookAdmissionConfiguration", kubeConfigFile };
  const plugins = ["ValidatingAdmissionWebhook", "MutatingAdmissionWebhook"].map((name) => ({ name, configuration }));

  // A second API server of the same cluster, with the certificate; the first one has none.
  const port = await freePort();
  const { etcd } = JSON.parse(readFileSync(layout.ports, "utf8"));
  const flags = {
    ...apiServerFlags(await preparePki(layout.pki), port, etcd),
    "admission-control-config-file": write("admission.yaml", { apiVersion, kind: "AdmissionConfiguration", plugins }),
  };
  const args = Object.entries(flags).map(([flag, value]) => `--${flag}=${value}`);
  const child = spawn(await resolveBinary("kube-apiserver"), args, { stdio: "ignore" });
  const config = await userConfig(directory, owner, DEFAULT_USER_GROUP);
  config.clusters = config.clusters.map((cluster) => ({ ...cluster, server: `https://127.0.0.1:${port}` }));
  const [asOwner, withCertificate] = [await test.user(owner), new KubernetesClient(config)];
  const creation = async (client: KubernetesClient) =>
    (await create(client, namespaceOf(uniqueName("dry")), true)).metadata.labels?.["capsule.clastix.io/tenant"];
  try {
    await test.start({ clientCa: authority.own.certificate });
    await eventually(async () => expect(await creation(withCertificate)).toBe(tenant));
    await eventually(() => expect(creation(asOwner)).rejects.toThrow(/failed calling webhook/));
  } finally {
    await withCertificate.close();
    child.kill();
    await once(child, "exit");
  }
});

/** The status of the answer to a review of the deletion that no API server has sent. */
async function forgedDeletion(port: number, oldObject: LiveObject): Promise<number> {
  const request = {
    ...{ uid: "1", operation: "DELETE", name: oldObject.metadata.name, oldObject },
    resource: { group: "capsule.clastix.io", version: "v1alpha1", resource: "tenants" },
    userInfo: { username: "kubernetes-admin", groups: ["system:masters"] },
  };
  const review = https.request({
    ...{ host: "127.0.0.1", port, path: "/admission/objects.kindstack.dev/orphan.objects.kindstack.dev" },
    ...{ method: "POST", headers: { "content-type": "application/json" }, agent: false, rejectUnauthorized: false },
  });
  review.end(JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request }));
  const [response] = await once(review, "response");
  response.resume();
  return response.statusCode;
}

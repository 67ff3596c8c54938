import { spawn } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import https from "node:https";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import tls from "node:tls";
import { KubeConfig } from "@kubernetes/client-node";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { userConfig } from "../../bench/users";
import {
  ApiError,
  KubernetesClient,
  known,
  type LiveObject,
  type ResourceType,
} from "../../providers/kubernetes/client";
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
import { create, expectAcceptance, expectRefusal, namespaceOf, TestAdmission, uniqueName } from "./test-admission";

const test = new TestAdmission(controlPlane());
const oil = uniqueName("oil");
const alice = uniqueName("alice");
const PROVISIONER = "capsule-namespace-provisioner";
const POLICIES: ResourceType = {
  apiVersion: "admissionregistration.k8s.io/v1",
  kind: "ValidatingAdmissionPolicy",
  plural: "validatingadmissionpolicies",
  namespaced: false,
};
const WEBHOOKS: ResourceType = {
  ...POLICIES,
  kind: "MutatingWebhookConfiguration",
  plural: "mutatingwebhookconfigurations",
};
const BINDINGS: ResourceType = {
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind: "ClusterRoleBinding",
  plural: "clusterrolebindings",
  namespaced: false,
};
const SECRETS: ResourceType = { apiVersion: "v1", kind: "Secret", plural: "secrets", namespaced: true };
const ROLES: ResourceType = { ...BINDINGS, kind: "ClusterRole", plural: "clusterroles" };
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
  await test.client.delete(SECRETS, CERTIFICATE_SECRET, test.namespace);
});

const dryCreation = () => create(asAlice, namespaceOf(uniqueName("dry")), true);
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
    const configuration = await known(test.client.get(WEBHOOKS, "tenants.capsule.clastix.io"));
    const [webhook] = (configuration as LiveObject & { webhooks: { clientConfig: { caBundle: string } }[] }).webhooks;
    return Buffer.from(webhook?.clientConfig.caBundle ?? "", "base64").toString();
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

  const refusal = await dryCreation().catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(ApiError);
  expect((refusal as ApiError).message).toContain("failed calling webhook");
  await expectAcceptance(test.client, namespaceOf(uniqueName("plain")));
  await expectAcceptance(test.client, {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "x", namespace: "kube-system" },
  });

  await test.serve();
  await eventually(dryCreation);
});

describe("the objects of admission", () => {
  it("are repaired when a user changes or deletes them", async () => {
    await test.serve();
    const subjects = async () => (await known(test.client.get(BINDINGS, PROVISIONER)))?.subjects;
    const group = { apiGroup: "rbac.authorization.k8s.io", kind: "Group", name: DEFAULT_USER_GROUP };
    expect(await subjects()).toEqual([group]);

    await edit(BINDINGS, PROVISIONER, { subjects: [{ ...group, name: "others" }] });
    await eventually(async () => expect(await subjects()).toEqual([group]));
    await edit(ROLES, PROVISIONER, { rules: [{ apiGroups: ["*"], resources: ["*"], verbs: ["*"] }] });
    await eventually(async () =>
      expect((await known(test.client.get(ROLES, PROVISIONER)))?.rules).toEqual([
        { apiGroups: [""], resources: ["namespaces"], verbs: ["create", "get", "patch"] },
      ]),
    );
    await edit(WEBHOOKS, "tenants.capsule.clastix.io", { webhooks: [] });
    await eventually(async () =>
      expect((await known(test.client.get(WEBHOOKS, "tenants.capsule.clastix.io")))?.webhooks).toHaveLength(3),
    );
    const policySpec = async () => (await known(test.client.get(POLICIES, "capsule-namespaces")))?.spec;
    const spec = await policySpec();
    await test.client.delete(POLICIES, "capsule-namespaces");
    await eventually(async () => expect(await policySpec()).toEqual(spec));
    await test.client.delete(BINDINGS, PROVISIONER);
    await eventually(async () => expect(await subjects()).toEqual([group]));
  });

  it("name a Service where the operator has one, with a path that the API server accepts", async () => {
    const service = { namespace: test.namespace, name: "kindstack", port: 443 };
    await test.start({ location: { service } });

    const configuration = await known(test.client.get(WEBHOOKS, "tenants.capsule.clastix.io"));
    const named = expect.objectContaining({
      clientConfig: expect.objectContaining({ service: expect.objectContaining(service) }),
    });
    expect(configuration?.webhooks).toEqual([named, named, named]);
  });

  it("follow the configured groups: only their members are asked about and may make namespaces", async () => {
    const others = uniqueName("others");
    const asMember = await test.user(alice, others);
    await expect(create(asMember, namespaceOf(uniqueName("no")), true)).rejects.toMatchObject({ status: 403 });
    vi.stubEnv("KINDSTACK_CAPSULE_USER_GROUPS", `${DEFAULT_USER_GROUP}, ${others}`);

    await test.serve();

    await eventually(() => create(asMember, namespaceOf(uniqueName("yes")), true));
    const binding = await known(test.client.get(BINDINGS, PROVISIONER));
    expect(binding?.subjects).toMatchObject([{ name: DEFAULT_USER_GROUP }, { name: others }]);
  });

  /** As `kubectl edit` would. */
  async function edit(type: ResourceType, name: string, patch: object): Promise<void> {
    await test.client.json("PATCH", `/apis/${type.apiVersion}/${type.plural}/${name}`, {
      query: { fieldManager: "kubectl-edit" },
      body: patch,
      contentType: "application/merge-patch+json",
    });
  }
});

describe("objects of all kinds", () => {
  const TENANT = { apiVersion: "capsule.clastix.io/v1alpha1", kind: "Tenant" };
  const spec = { owner: { kind: "User" as const, name: alice } };
  const tenantWith = (annotations: Record<string, string>) => ({
    ...TENANT,
    metadata: { name: uniqueName("annotated"), annotations },
    spec,
  });
  const annotate = (name: string, annotations: Record<string, string | null>) =>
    test.client.mergePatch(TENANT, name, undefined, { metadata: { annotations } });
  const deletion = (name: string, options: object) =>
    test.client.json("DELETE", `/apis/${TENANT.apiVersion}/tenants/${name}`, {
      body: { apiVersion: "v1", kind: "DeleteOptions", ...options },
    });
  const read = async (name: string) => (await known(test.client.get(TENANT, name)))?.metadata;

  it("are refused with an annotation that cannot be understood, and only when that is what changes", async () => {
    const before = uniqueName("before");
    await removeAdmission(test.client); // that of an earlier test
    await eventually(() => test.tenant(before, spec, { "kindstack.dev/paused": "yes" }));
    await test.serve();
    await eventually(() =>
      expectRefusal(
        test.client,
        tenantWith({ "kindstack.dev/deletion-policy": "Retain" }),
        'annotation kindstack.dev/deletion-policy: "Retain" must be Orphan or Delete',
      ),
    );
    await expect(create(test.client, tenantWith({ "kindstack.dev/pause": "true" }), true)).rejects.toThrow(
      "unknown annotation kindstack.dev/pause; known are kindstack.dev/paused, ",
    );
    const fine = { "kindstack.dev/paused": " True", "kindstack.dev/deletion-policy": "orphan", "example.com/x": "" };
    await create(test.client, tenantWith(fine), true);
    await annotate(before, { note: "other writes go on", "kindstack.dev/reconcile": "any" });
    await expect(annotate(before, { "kindstack.dev/paused": "no" })).rejects.toThrow("must be true or false");
    await annotate(before, { "kindstack.dev/paused": null });
  });

  it("record that their deletion leaves their resources, which is refused while no operator answers", async () => {
    const server = await test.serve();
    const name = uniqueName("orphaned");
    await test.tenant(name, spec);
    await test.client.mergePatch(TENANT, name, undefined, { metadata: { finalizers: ["example.com/hold"] } });
    await deletion(name, { propagationPolicy: "Orphan", dryRun: ["All"] });
    expect((await read(name))?.annotations ?? {}).not.toHaveProperty("kindstack.dev/orphaned");
    await server.close();
    await expect(deletion(name, { propagationPolicy: "Orphan" })).rejects.toThrow("orphan.objects.kindstack.dev");
    expect((await read(name))?.deletionTimestamp).toBeUndefined();

    const forged = uniqueName("forged");
    const again = await test.serve();
    await deletion(name, { orphanDependents: true });
    await eventually(async () =>
      expect(obeyedAnnotations({ metadata: { ...(await read(name)), finalizers: [] } }).releases).toBe(true),
    );
    const plain = uniqueName("plain");
    await test.tenant(plain, spec);
    await test.client.mergePatch(TENANT, plain, undefined, { metadata: { finalizers: ["example.com/hold"] } });
    await deletion(plain, { propagationPolicy: "Foreground" });
    expect(obeyedAnnotations({ metadata: { ...(await read(plain)) } }).releases).toBe(false);
    // A forged review of such a deletion, by one who knows the object, does nothing to one that is not so deleted.
    const { uid } = await test.tenant(forged, spec).then(({ metadata }) => metadata);
    await test.client.mergePatch(TENANT, forged, undefined, { metadata: { finalizers: ["example.com/hold"] } });
    for (let reviews = 0; reviews < 3; reviews++) {
      expect(await forgedDeletion(again.port, (await known(test.client.get(TENANT, forged))) as LiveObject)).toBe(200);
    }
    await deletion(forged, { propagationPolicy: "Background" });
    await delay(1_000);
    const left = await read(forged);
    expect(left).toMatchObject({ uid, deletionTimestamp: expect.any(String) });
    expect(left?.annotations ?? {}).not.toHaveProperty("kindstack.dev/orphaned");
    for (const held of [name, plain, forged]) {
      await test.client.mergePatch(TENANT, held, undefined, { metadata: { finalizers: null } });
    }
  });
});

it("client certificates of API servers are demanded where a CA is configured: reviews of the API server that has one are answered, and no others", async () => {
  const [tenant, owner] = [uniqueName("gas"), uniqueName("bob")];
  await test.tenant(tenant, { owner: { kind: "User", name: owner } });
  const directory = path.dirname(controlPlane().kubeconfig);
  const layout = layoutOf(directory);
  const authority = await TestAuthority.create();
  const certificate = await authority.user("api-server");
  const folder = testDirectory();
  const write = (name: string, text: string) => {
    writeFileSync(path.join(folder, name), text);
    return path.join(folder, name);
  };
  const user = {
    "client-certificate": write("tls.crt", certificate.certificate),
    "client-key": write("tls.key", certificate.key),
  };
  // JSON is YAML, too.
  const kubeConfigFile = write(
    "kubeconfig",
    JSON.stringify({ apiVersion: "v1", kind: "Config", users: [{ name: "*", user }] }),
  );
  const configuration = {
    apiVersion: "apiserver.config.k8s.io/v1",
    kind: "WebhookAdmissionConfiguration",
    kubeConfigFile,
  };
  const plugins = ["ValidatingAdmissionWebhook", "MutatingAdmissionWebhook"].map((name) => ({ name, configuration }));
  const admissionConfiguration = write(
    "admission.yaml",
    JSON.stringify({ apiVersion: "apiserver.config.k8s.io/v1", kind: "AdmissionConfiguration", plugins }),
  );

  // A second API server of the same cluster, with the certificate; the first one has none.
  const port = await freePort();
  const { etcd } = JSON.parse(readFileSync(layout.ports, "utf8"));
  const pki = await preparePki(layout.pki);
  const flags = {
    ...apiServerFlags(pki, port, etcd),
    "admission-control-config-file": admissionConfiguration,
  };
  const child = spawn(
    await resolveBinary("kube-apiserver"),
    Object.entries(flags).map(([flag, value]) => `--${flag}=${value}`),
    { stdio: "ignore" },
  );
  const config = await userConfig(directory, owner, DEFAULT_USER_GROUP);
  const [cluster] = config.clusters;
  const second = new KubeConfig();
  second.loadFromOptions({
    ...config,
    clusters: [{ ...cluster, server: `https://127.0.0.1:${port}` }],
  });
  const [asOwner, withCertificate] = [await test.user(owner), new KubernetesClient(second)];
  try {
    const server = await test.start({ clientCa: authority.own.certificate });
    const creation = (client: KubernetesClient) => create(client, namespaceOf(uniqueName("dry")), true);
    await eventually(async () =>
      expect((await creation(withCertificate)).metadata.labels?.["capsule.clastix.io/tenant"]).toBe(tenant),
    );
    await eventually(() => expect(creation(asOwner)).rejects.toThrow(/failed calling webhook/));

    // A stranger's forged review, and one with a certificate of another CA.
    const other = await (await TestAuthority.create()).user("api-server");
    for (const own of [{}, { cert: other.certificate, key: other.key }]) {
      await expect(forgedReview(server.port, own)).rejects.toThrow();
    }
    const trusted = { cert: certificate.certificate, key: certificate.key };
    expect(await forgedReview(server.port, trusted)).toBe(400);
  } finally {
    await withCertificate.close();
    child.kill();
    await once(child, "exit");
  }
});

/** The status of the answer to a review that is none. */
function forgedReview(port: number, options: object): Promise<number> {
  return send(port, "tenants.capsule.clastix.io/namespaces.capsule.clastix.io", {}, options);
}

function forgedDeletion(port: number, oldObject: LiveObject): Promise<number> {
  const request = {
    ...{ uid: "1", operation: "DELETE", name: oldObject.metadata.name, oldObject },
    resource: { group: "capsule.clastix.io", version: "v1alpha1", resource: "tenants" },
    userInfo: { username: "kubernetes-admin", groups: ["system:masters"] },
  };
  const review = { apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request };
  return send(port, "objects.kindstack.dev/orphan.objects.kindstack.dev", review);
}

async function send(port: number, path: string, body: object, options: object = {}): Promise<number> {
  const headers = { "content-type": "application/json" };
  const request = https.request({
    ...{ host: "127.0.0.1", port, path: `/admission/${path}`, method: "POST", headers },
    ...{ agent: false, rejectUnauthorized: false },
    ...options,
  });
  request.end(JSON.stringify(body));
  const [response] = await once(request, "response");
  response.resume();
  return response.statusCode;
}

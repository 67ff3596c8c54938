import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KubernetesClient, Manifest } from "../../providers/kubernetes/client";
import { controlPlane } from "../control-plane";
import { eventually } from "../e2e/eventually";
import { create, expectRefusal, namespaceOf, TestAdmission, uniqueName } from "./test-admission";

const admission = new TestAdmission(controlPlane());
const oil = uniqueName("oil");
const free = uniqueName("free");
const alice = uniqueName("alice");
let asAlice: KubernetesClient;

beforeAll(async () => {
  await admission.open();
  await admission.tenant(oil, {
    owner: { kind: "User", name: alice },
    ingressClasses: { allowed: ["default", "internal"], allowedRegex: "^edge-[0-9]+$" },
    storageClasses: { allowed: ["fast"], allowedRegex: "" },
    containerRegistries: { allowed: ["registry.example.com:5000", "docker.io"], allowedRegex: "" },
    externalServiceIPs: { allowed: ["10.20.0.0/16", "192.168.1.2"] },
  });
  await admission.tenant(free, { owner: { kind: "User", name: alice } });
  await admission.tenantNamespace(oil, oil, alice);
  await admission.tenantNamespace(free, free, alice);
  asAlice = await admission.user(alice);
  await admission.serve();
  // Policies are read by the API server about once a second.
  await eventually(() => expectRefusal(asAlice, ingress("other"), "not allowed"));
  await eventually(() => expectRefusal(asAlice, service(["10.21.0.1"]), "not allowed"));
});
afterAll(() => admission.close());

function ingress(ingressClassName?: string, metadata: Manifest["metadata"] = {}): Manifest {
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "Ingress",
    metadata: { name: uniqueName("web"), namespace: oil, ...metadata },
    spec: {
      ...(ingressClassName && { ingressClassName }),
      defaultBackend: { service: { name: "web", port: { number: 80 } } },
    },
  };
}

function claim(storageClassName?: string): Manifest {
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { name: uniqueName("data"), namespace: oil },
    spec: {
      ...(storageClassName !== undefined && { storageClassName }),
      accessModes: ["ReadWriteOnce"],
      resources: { requests: { storage: "1Gi" } },
    },
  };
}

function pod(image: string, more: object = {}): Manifest {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: uniqueName("app"), namespace: oil },
    spec: { containers: [{ name: "app", image }], ...more },
  };
}

function service(externalIPs: string[]): Manifest {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: uniqueName("web"), namespace: oil },
    spec: { ports: [{ port: 80 }], externalIPs },
  };
}

const elsewhere = (manifest: Manifest): Manifest => ({
  ...manifest,
  metadata: { ...manifest.metadata, namespace: free },
});

describe("a tenant's owner", () => {
  it.each([
    ["an ingress class of the list", () => ingress("internal")],
    ["an ingress class that the expression matches", () => ingress("edge-7")],
    [
      "an ingress class in the annotation",
      () => ingress(undefined, { annotations: { "kubernetes.io/ingress.class": "default" } }),
    ],
    ["a storage class of the list", () => claim("fast")],
    ["a registry with a port", () => pod("registry.example.com:5000/team/app:1")],
    ["Docker's registry, unnamed", () => pod("nginx")],
    ["Docker's registry, with a path", () => pod("library/nginx:1.27")],
    ["an address in a range and another one", () => service(["10.20.3.4", "192.168.1.2"])],
    ["a Service without an external address", () => service([])],
  ])("may use %s", async (_, manifest) => {
    await expect(create(asAlice, manifest(), true)).resolves.toBeDefined();
  });

  it.each([
    [
      "another ingress class",
      () => ingress("public"),
      `class public is not allowed in the tenant ${oil}; allowed: default, internal, and what matches ^edge-[0-9]+$`,
    ],
    ["an ingress class like an allowed one", () => ingress("xedge-7"), "class xedge-7 is not allowed"],
    ["no ingress class", () => ingress(), "an ingress class must be named"],
    [
      "another class in the annotation",
      () => ingress(undefined, { annotations: { "kubernetes.io/ingress.class": "public" } }),
      "class public is not allowed",
    ],
    [
      "another storage class",
      () => claim("slow"),
      `storage class slow is not allowed in the tenant ${oil}; allowed: fast`,
    ],
    ["no storage class", () => claim(), "a storage class must be named"],
    [
      "another registry",
      () => pod("evil.example.com/app"),
      `registry evil.example.com is not allowed in the tenant ${oil}; allowed: registry.example.com:5000, docker.io`,
    ],
    [
      "another port of a registry",
      () => pod("registry.example.com/app"),
      "registry registry.example.com is not allowed",
    ],
    ["a local registry", () => pod("localhost/app"), "registry localhost is not allowed"],
    [
      "another registry for an init container",
      () => pod("nginx", { initContainers: [{ name: "init", image: "evil.example.com/app" }] }),
      "evil.example.com",
    ],
    [
      "another registry for an image volume",
      () => pod("nginx", { volumes: [{ name: "v", image: { reference: "evil.example.com/data" } }] }),
      "evil.example.com",
    ],
    [
      "an address outside the ranges",
      () => service(["10.20.3.4", "10.21.0.1"]),
      `address 10.21.0.1 is not allowed in the tenant ${oil}; allowed: 10.20.0.0/16, 192.168.1.2`,
    ],
  ])("may not use %s", async (_, manifest, message) => {
    await expectRefusal(asAlice, manifest(), message);
  });

  it("may use what pleases in a tenant without lists", async () => {
    for (const manifest of [
      ingress("public"),
      ingress(),
      claim("slow"),
      pod("evil.example.com/app"),
      service(["1.2.3.4"]),
    ]) {
      await expect(create(asAlice, elsewhere(manifest), true)).resolves.toBeDefined();
    }
  });

  it("keeps what was allowed when the list changes, which holds at once for what is new", async () => {
    const made = await create(asAlice, ingress("internal"));
    const { name } = made.metadata;
    const type = await admission.client.resourceType("networking.k8s.io/v1", "Ingress");
    const tenants = await admission.client.resourceType("capsule.clastix.io/v1alpha1", "Tenant");

    await admission.client.mergePatch(tenants, oil, undefined, { spec: { ingressClasses: { allowed: ["default"] } } });

    await eventually(() => expectRefusal(asAlice, ingress("internal"), "allowed: default, and"));
    await expect(asAlice.mergePatch(type, name, oil, { metadata: { labels: { a: "b" } } })).resolves.toBeDefined();
    await expect(asAlice.mergePatch(type, name, oil, { spec: { ingressClassName: "public" } })).rejects.toThrow(
      "public",
    );
  });
});

describe("what Kindstack manages in a tenant's namespace", () => {
  const managed = (name: string): Manifest => ({
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: { name, namespace: oil, labels: { "kindstack.dev/owner-uid": "uid" } },
    spec: { podSelector: {} },
  });

  it("cannot be changed, deleted or forged by its owner, who may do so with everything else", async () => {
    const type = await admission.client.resourceType("networking.k8s.io/v1", "NetworkPolicy");
    const name = uniqueName("capsule");
    await create(admission.client, managed(name));
    const message = `managed by Kindstack: only the Tenant ${oil}`;

    await expect(asAlice.mergePatch(type, name, oil, { spec: { policyTypes: ["Egress"] } })).rejects.toThrow(message);
    const unlabelled = asAlice.mergePatch(type, name, oil, {
      metadata: { labels: { "kindstack.dev/owner-uid": null } },
    });
    await expect(unlabelled).rejects.toThrow(message);
    await expect(asAlice.delete(type, name, oil)).rejects.toThrow(message);
    await expect(
      asAlice.json("DELETE", `/apis/networking.k8s.io/v1/namespaces/${oil}/networkpolicies`),
    ).rejects.toThrow(message);
    await expectRefusal(asAlice, managed(uniqueName("forged")), message);
    const own = await create(asAlice, {
      ...managed(uniqueName("own")),
      metadata: { name: uniqueName("own"), namespace: oil },
    });
    await expect(asAlice.delete(type, own.metadata.name, oil)).resolves.toBeDefined();
    await expect(
      admission.client.mergePatch(type, name, oil, { spec: { policyTypes: ["Egress"] } }),
    ).resolves.toBeDefined();
  });

  it("goes with its namespace all the same", async () => {
    const namespaces = await admission.client.resourceType("v1", "Namespace");
    const name = uniqueName("short");
    await admission.tenantNamespace(name, oil, alice);
    const policy = managed("capsule");
    await create(admission.client, { ...policy, metadata: { ...policy.metadata, namespace: name } });

    await admission.client.delete(namespaces, name);

    await eventually(async () => expect(await admission.client.get(namespaces, name)).toBeUndefined());
  });
});

describe("the cluster's own namespaces", () => {
  it("are bound by no policy", async () => {
    const inDefault = { ...ingress("public"), metadata: { name: uniqueName("web"), namespace: "default" } };

    await expect(create(admission.client, inDefault, true)).resolves.toBeDefined();
    await expect(create(admission.client, namespaceOf(uniqueName("plain")), true)).resolves.toBeDefined();
  });
});

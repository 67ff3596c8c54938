import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type KubernetesClient, known, type Manifest } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { controllerReference } from "../../stacks/contract/object";
import { keyRuleAnnotations } from "../../stacks/kinds/capsule-tenant/namespace-metadata";
import { controlPlane } from "../control-plane";
import {
  create,
  expectAcceptance,
  expectRefusal,
  namespaceOf,
  pathOf,
  TestAdmission,
  uniqueName,
} from "./test-admission";

const admission = new TestAdmission(controlPlane());
const oil = uniqueName("oil");
const free = uniqueName("free");
const annotated = uniqueName("annotated");
const batch = uniqueName("batch");
const alice = uniqueName("alice");
let asAlice: KubernetesClient;

beforeAll(async () => {
  await admission.open();
  await admission.tenant(oil, {
    owner: { kind: "User", name: alice },
    ingressClasses: { allowed: ["default", "internal"], allowedRegex: "^edge-[0-9]+$" },
    ingressHostnames: { allowed: ["oil.example.com"], allowedRegex: "^[a-z]+[.]oil[.]example[.]com$" },
    storageClasses: { allowed: ["fast"], allowedRegex: "" },
    containerRegistries: { allowed: ["registry.example.com:5000", "docker.io"], allowedRegex: "" },
    imagePullPolicies: ["Always"],
    priorityClasses: { allowed: [batch], allowedRegex: "^never" },
    allowedServices: { nodePort: false, externalName: false, loadBalancer: true },
    externalServiceIPs: { allowed: ["10.20.0.0/16", "192.168.1.2"] },
    namespacesMetadata: {
      forbiddenLabels: { denied: ["team"], deniedRegex: "^cost" },
      allowedLabels: { allowed: ["cost-center", "pod-security.kubernetes.io/warn", "kindstack.dev/owner-uid"] },
    },
  });
  await admission.tenant(free, { owner: { kind: "User", name: alice } });
  await admission.tenant(
    annotated,
    { owner: { kind: "User", name: alice } },
    {
      "capsule.clastix.io/allowed-image-pull-policy": "Always, IfNotPresent",
      "priorityclass.capsule.clastix.io/allowed": batch,
      "priorityclass.capsule.clastix.io/allowed-regex": "",
      "capsule.clastix.io/enable-node-ports": "false",
      "capsule.clastix.io/enable-external-name": "false",
      "capsule.clastix.io/enable-loadbalancer-service": "false",
    },
  );
  for (const name of [batch, "never-mind"]) {
    await admission.create({
      apiVersion: "scheduling.k8s.io/v1",
      kind: "PriorityClass",
      metadata: { name },
      value: 1,
    } as Manifest);
  }
  for (const name of [oil, free, annotated]) await admission.tenantNamespace(name, name, alice);
  asAlice = await admission.user(alice);
  await admission.serve();
  // Policies are read by the API server about once a second.
  await eventually(() => expectRefusal(asAlice, ingress("other"), "not allowed"));
  await eventually(() => expectRefusal(asAlice, at(annotated, pod("nginx", {}, "Never")), "not allowed"));
});
afterAll(() => admission.close());

const HOST = "oil.example.com";
/** A change that no policy has anything against. */
const labelled = { metadata: { labels: { a: "b" } } };

function ingress(
  ingressClassName?: string,
  metadata: Manifest["metadata"] = {},
  spec: object = { rules: [{ host: HOST }] },
): Manifest {
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "Ingress",
    metadata: { name: uniqueName("web"), namespace: oil, ...metadata },
    spec: { ...(ingressClassName && { ingressClassName }), ...spec },
  };
}

const annotatedClass = (value: string) => ({ annotations: { "kubernetes.io/ingress.class": value } });
const hosts = (...names: (string | undefined)[]) =>
  ingress("default", {}, { rules: names.map((host) => ({ ...(host !== undefined && { host }) })) });

const aliased = (value: string, key = "nginx.ingress.kubernetes.io/server-alias") =>
  ingress("default", { annotations: { [key]: value } });

function claim(storageClassName?: string, annotation?: string): Manifest {
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: {
      name: uniqueName("data"),
      namespace: oil,
      ...(annotation !== undefined && { annotations: { "volume.beta.kubernetes.io/storage-class": annotation } }),
    },
    spec: {
      ...(storageClassName !== undefined && { storageClassName }),
      accessModes: ["ReadWriteOnce"],
      resources: { requests: { storage: "1Gi" } },
    },
  };
}

function pod(image: string, more: object = {}, imagePullPolicy = "Always"): Manifest {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: uniqueName("app"), namespace: oil },
    spec: { containers: [{ name: "app", image, imagePullPolicy }], ...more },
  };
}

function service(externalIPs: string[], more: object = {}): Manifest {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: uniqueName("web"), namespace: oil },
    spec: { ports: [{ port: 80 }], externalIPs, ...more },
  };
}

const loadBalancer = (more: object = {}) =>
  service([], { type: "LoadBalancer", allocateLoadBalancerNodePorts: false, ...more });
const addressed = (key: string) => {
  const made = loadBalancer();
  return { ...made, metadata: { ...made.metadata, annotations: { [key]: "10.20.3.4,1.2.3.4" } } };
};
const named = (key: string, hosts: string) => {
  const made = service([]);
  const annotations = { [`external-dns.kubernetes.io/${key}`]: hosts };
  return { ...made, metadata: { ...made.metadata, annotations } };
};
const namedPod = (hosts: string) => {
  const made = pod("nginx");
  return {
    ...made,
    metadata: { ...made.metadata, annotations: { "external-dns.alpha.kubernetes.io/hostname": hosts } },
  };
};
const onPort = (hostPort: number) => ({
  containers: [{ name: "app", image: "nginx", imagePullPolicy: "Always", ports: [{ containerPort: 80, hostPort }] }],
});
const externalName = () => service([], { type: "ExternalName", externalName: "example.com" });

const at = (namespace: string, manifest: Manifest): Manifest => ({
  ...manifest,
  metadata: { ...manifest.metadata, namespace },
});

describe("a tenant's owner", () => {
  it.each([
    ["an ingress class of the list", () => ingress("internal")],
    ["an ingress class that the expression matches", () => ingress("edge-7")],
    ["an ingress class in the annotation", () => ingress(undefined, annotatedClass("default"))],
    ["a host name of the list, and one that the expression matches", () => hosts(HOST, "www.oil.example.com")],
    ["a storage class of the list", () => claim("fast")],
    ["a storage class in the annotation", () => claim(undefined, "fast")],
    ["a registry with a port", () => pod("registry.example.com:5000/team/app:1")],
    ["Docker's registry, unnamed", () => pod("nginx")],
    ["Docker's registry, with a path", () => pod("library/nginx:1.27")],
    ["a priority class of the list", () => pod("nginx", { priorityClassName: batch })],
    ["a priority class that the expression matches", () => pod("nginx", { priorityClassName: "never-mind" })],
    ["a load balancer without node ports", () => loadBalancer()],
    ["a host name of the list for ExternalDNS", () => named("hostname", HOST)],
    ["an address in a range and another one", () => service(["10.20.3.4", "192.168.1.2"])],
    ["a Service without an external address", () => service([])],
  ])("may use %s", async (_, manifest) => {
    await expectAcceptance(asAlice, manifest());
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
      () => ingress(undefined, annotatedClass("public")),
      "class public is not allowed",
    ],
    [
      "another class in the annotation beside an allowed one",
      () => ingress("default", annotatedClass("public")),
      "public",
    ],
    [
      "another host name",
      () => hosts(HOST, "gas.example.com"),
      `host name gas.example.com is not allowed in the tenant ${oil}`,
    ],
    ["a rule for all hosts", () => hosts(HOST, undefined), "an Ingress for all host names is not allowed"],
    [
      "a default backend, which is for all hosts",
      () => ingress("default", {}, { defaultBackend: { service: { name: "web", port: { number: 80 } } } }),
      "an Ingress for all host names is not allowed",
    ],
    ["a wildcard", () => hosts("*.oil.example.com"), "host name *.oil.example.com is not allowed"],
    [
      "a certificate for another host name",
      () => ingress("default", {}, { rules: [{ host: HOST }], tls: [{ hosts: [HOST, "gas.example.com"] }] }),
      "host name gas.example.com is not allowed",
    ],
    ["another storage class in the annotation beside an allowed one", () => claim("fast", "slow"), "class slow is not"],
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
    ["a registry with a capital, which has no dot", () => pod("EVIL/x:1"), "registry EVIL is not allowed"],
    [
      "a capital in an allowed registry",
      () => pod("registry.EXAMPLE.com:5000/x"),
      "registry registry.EXAMPLE.com:5000",
    ],
    ["a port alone", () => pod("evil:5000/x"), "registry evil:5000 is not allowed"],
    ["another pull policy", () => pod("nginx", {}, "IfNotPresent"), "pull policy IfNotPresent is not allowed"],
    [
      "another pull policy for an init container",
      () => pod("nginx", { initContainers: [{ name: "init", image: "nginx", imagePullPolicy: "Never" }] }),
      "pull policy Never is not allowed",
    ],
    [
      "another priority class",
      () => pod("nginx", { priorityClassName: "system-node-critical" }),
      "system-node-critical",
    ],
    ["no storage class by an empty annotation, beside a class of the list", () => claim("fast", ""), "must be named"],
    ["no ingress class by an empty annotation", () => ingress(undefined, annotatedClass("")), "must be named"],
    ["a host name by an alias", () => aliased("oil.example.com, gas.example.com"), "gas.example.com is not allowed"],
    ...[
      ...["haproxy-ingress.github.io/server-alias", "konghq.com/host-aliases", "ingress.kubernetes.io/redirect-from"],
      ...["appgw.ingress.kubernetes.io/hostname-extension", "nginx.ingress.kubernetes.io/Server-Alias"],
    ].map((key): [string, () => Manifest, string] => [
      `a host name by ${key}`,
      () => aliased("gas.example.com", key),
      "gas.example.com is not allowed",
    ]),
    [
      "host names by an expression, even one that the list matches",
      () => aliased("gas.example.com|oil.example.com", "haproxy-ingress.github.io/server-alias-regex"),
      "all host names",
    ],
    ["an image by its id", () => pod(`sha256:${"0".repeat(64)}`), "can be one that a node has"],
    ["an image by the beginning of its id", () => pod("0123456789ab"), "can be one that a node has"],
    ["the network of the node", () => pod("nginx", { hostNetwork: true }), "of the node"],
    ["the processes of the node", () => pod("nginx", { hostPID: true }), "of the node"],
    ["a port of the node", () => pod("nginx", onPort(8080)), "of the node"],
    ["an address of a load balancer", () => loadBalancer({ loadBalancerIP: "1.2.3.4" }), "address 1.2.3.4 is not"],
    ["an address by an annotation", () => addressed("metallb.universe.tf/loadBalancerIPs"), "address 1.2.3.4 is not"],
    ["an address by another annotation", () => addressed("lbipam.cilium.io/ips"), "address 1.2.3.4 is not"],
    ["a host name of ExternalDNS", () => named("hostname", "gas.example.com"), "gas.example.com is not allowed"],
    ["an internal one", () => named("internal-hostname", `${HOST},x.org`), "x.org is not allowed"],
    ["a host name of ExternalDNS on a Pod", () => namedPod("gas.example.com"), "gas.example.com is not allowed"],
    ["an address of PureLB", () => addressed("purelb.io/addresses"), "address 1.2.3.4 is not"],
    ["an address by its name", () => addressed("networking.gke.io/static-ip-name"), "address 1.2.3.4 is not"],
    ["a node port", () => service([], { type: "NodePort" }), "node ports are not allowed"],
    ["a load balancer with node ports", () => loadBalancer({ allocateLoadBalancerNodePorts: true }), "node ports"],
    [
      "a load balancer with a node port by number",
      () => loadBalancer({ ports: [{ port: 80, nodePort: 30123 }] }),
      "node ports",
    ],
    [
      "a load balancer with health checks on the nodes",
      () => loadBalancer({ externalTrafficPolicy: "Local" }),
      "node ports",
    ],
    ["an external name", () => externalName(), "ExternalName are not allowed"],
    ["a local registry", () => pod("localhost/app"), "registry localhost is not allowed"],
    [
      "another registry for an init container",
      () =>
        pod("nginx", { initContainers: [{ name: "init", image: "evil.example.com/app", imagePullPolicy: "Always" }] }),
      "evil.example.com",
    ],
    [
      "another registry for an image volume",
      () =>
        pod("nginx", { volumes: [{ name: "v", image: { reference: "evil.example.com/data", pullPolicy: "Always" } }] }),
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

  it("has Pods on the tenant's nodes alone, in clusters that set no node selector, too", async () => {
    const pinned = uniqueName("pinned");
    await admission.tenant(pinned, { owner: { kind: "User", name: alice }, nodeSelector: { disk: "ssd" } });
    await admission.tenantNamespace(pinned, pinned, alice);

    await eventually(() => expectRefusal(asAlice, at(pinned, pod("nginx")), "must have the nodeSelector disk: ssd"));
    await expectRefusal(asAlice, at(pinned, pod("nginx", { nodeSelector: { disk: "hdd" } })), "nodeSelector disk: ssd");
    const placed = pod("nginx", { nodeSelector: { disk: "ssd", zone: "a" } });
    await expectAcceptance(asAlice, at(pinned, placed));
  });

  it("may use what pleases in a tenant without lists", async () => {
    for (const manifest of [
      ingress("public"),
      ingress(),
      claim("slow"),
      pod("evil.example.com/app"),
      service(["1.2.3.4"]),
      hosts(undefined),
      externalName(),
      pod("nginx", { priorityClassName: batch }, "Never"),
      service([], { type: "NodePort" }),
      pod("nginx", { hostNetwork: true }),
    ]) {
      await expectAcceptance(asAlice, at(free, manifest));
    }
  });

  it("is held to what Capsule's annotations on the Tenant say", async () => {
    const allowed = [pod("nginx", { priorityClassName: batch }, "IfNotPresent"), service([])];
    for (const manifest of allowed) await expectAcceptance(asAlice, at(annotated, manifest));
    const refused: [Manifest, string][] = [
      [pod("nginx", {}, "Never"), "allowed: Always, IfNotPresent"],
      [pod("nginx", { priorityClassName: "never-mind" }), `allowed: ${batch}`],
      [service([], { type: "NodePort" }), "node ports are not allowed"],
      [loadBalancer(), "LoadBalancer are not allowed"],
      [externalName(), "ExternalName are not allowed"],
    ];
    for (const [manifest, message] of refused) await expectRefusal(asAlice, at(annotated, manifest), message);
  });

  it.each<[string, () => Manifest, object, string]>([
    ["an Ingress by its field", () => ingress("default"), { spec: { ingressClassName: "public" } }, "class public"],
    ["an Ingress by its annotation", () => ingress("default"), { metadata: annotatedClass("public") }, "class public"],
    ["an Ingress without any class", () => ingress("default"), { spec: { ingressClassName: null } }, "must be named"],
    [
      "an Ingress by its hosts",
      () => hosts(HOST),
      { spec: { rules: [{ host: "gas.example.com" }] } },
      "gas.example.com",
    ],
    [
      "a claim by its annotation",
      () => claim("fast"),
      { metadata: { annotations: { "volume.beta.kubernetes.io/storage-class": "slow" } } },
      "field is immutable",
    ],
    ["a Service by its type", () => service([]), { spec: { type: "NodePort" } }, "node ports"],
    ["a Service by a node port", () => loadBalancer(), { spec: { allocateLoadBalancerNodePorts: true } }, "node ports"],
    [
      "a Service by a name",
      () => service([]),
      { spec: { type: "ExternalName", externalName: "x.org" } },
      "ExternalName",
    ],
    [
      "a Service by its addresses",
      () => service(["10.20.0.1"]),
      { spec: { externalIPs: ["10.20.0.1", "10.21.0.1"] } },
      "10.21",
    ],
    ["a Pod by its image", () => pod("nginx"), { spec: { containers: [{ name: "app", image: "EVIL/x" }] } }, "EVIL"],
  ])(
    "cannot change %s to what is not allowed, and can change what else there is",
    async (_, manifest, patch, message) => {
      const made = await create(asAlice, manifest());
      const type = await admission.client.resourceType(made.apiVersion, made.kind);
      const { name } = made.metadata;

      const change = asAlice.json("PATCH", `${pathOf(type, oil)}/${name}`, {
        body: patch,
        contentType: "application/strategic-merge-patch+json",
      });
      await expect(change).rejects.toThrow(message);
      await expect(asAlice.mergePatch(type, name, oil, labelled)).resolves.toMatchObject(labelled);
    },
  );

  it("cannot add an ephemeral container from another registry, or with another pull policy", async () => {
    const { metadata } = await create(asAlice, pod("nginx"));
    await admission.grant(oil, alice, { resources: ["pods/ephemeralcontainers"], verbs: ["patch"] });
    const add = (image: string, imagePullPolicy: string) =>
      asAlice.json("PATCH", `/api/v1/namespaces/${oil}/pods/${metadata.name}/ephemeralcontainers`, {
        body: { spec: { ephemeralContainers: [{ name: uniqueName("debug"), image, imagePullPolicy }] } },
        contentType: "application/strategic-merge-patch+json",
      });

    await eventually(() =>
      expect(add("busybox", "Always")).resolves.toMatchObject({
        spec: { ephemeralContainers: [{ image: "busybox" }] },
      }),
    );
    await expect(add("EVIL/x:1", "Always")).rejects.toThrow("registry EVIL is not allowed");
    await expect(add("nginx", "Never")).rejects.toThrow("pull policy Never is not allowed");
  });

  it("keeps what was allowed when the list changes, which holds at once for what is new", async () => {
    const made = await create(asAlice, ingress("internal"));
    const { name } = made.metadata;
    const type = await admission.client.resourceType("networking.k8s.io/v1", "Ingress");
    const tenants = await admission.client.resourceType("capsule.clastix.io/v1alpha1", "Tenant");

    await admission.client.mergePatch(tenants, oil, undefined, { spec: { ingressClasses: { allowed: ["default"] } } });

    await eventually(() => expectRefusal(asAlice, ingress("internal"), "allowed: default, and"));
    await expect(asAlice.mergePatch(type, name, oil, labelled)).resolves.toMatchObject(labelled);
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
    await asAlice.delete(type, own.metadata.name, oil);
    expect(await known(admission.client.get(type, own.metadata.name, oil))).toBeUndefined();
    const narrowed = { spec: { policyTypes: ["Egress"] } };
    await expect(admission.client.mergePatch(type, name, oil, narrowed)).resolves.toMatchObject(narrowed);
  });

  it("goes with its namespace all the same", async () => {
    const namespaces = await admission.client.resourceType("v1", "Namespace");
    const name = uniqueName("short");
    await admission.tenantNamespace(name, oil, alice);
    const policy = managed("capsule");
    await create(admission.client, { ...policy, metadata: { ...policy.metadata, namespace: name } });

    await admission.client.delete(namespaces, name);

    await eventually(async () => expect(await known(admission.client.get(namespaces, name))).toBeUndefined());
  });
});

describe("names that Kindstack uses in a tenant's namespace", () => {
  const named = (metadata: Manifest["metadata"], kind = "NetworkPolicy"): Manifest => ({
    apiVersion: "networking.k8s.io/v1",
    kind,
    metadata: { namespace: oil, ...metadata },
    spec: { podSelector: {}, ingress: [{}] },
  });

  it("are reserved, for names that are generated as well", async () => {
    await expectRefusal(
      asAlice,
      named({ name: `capsule-${oil}-7` }),
      `reserved for what Kindstack makes of the Tenant ${oil}`,
    );
    const role = {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "RoleBinding",
      metadata: { name: `capsule-${oil}-0`, namespace: oil },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "view" },
    } as Manifest;
    await expectRefusal(asAlice, role, "is reserved");
    await expectAcceptance(asAlice, named({ name: `capsule-${oil}` }));
    await expectAcceptance(admission.client, named({ name: `capsule-${oil}-7` }));
  });
});

describe("metadata of a tenant's namespace", () => {
  const patch = (metadata: object) => async (client: KubernetesClient) =>
    client.mergePatch(await client.resourceType("v1", "Namespace"), oil, undefined, { metadata });

  beforeAll(async () => {
    // The stack writes the rules of the tenant on the namespace.
    const metadata = { annotations: keyRuleAnnotations(await admission.findTenant(oil)) };
    await patch({ ...metadata, labels: { "pod-security.kubernetes.io/enforce": "baseline" } })(admission.client);
    // Some clusters let tenants' owners label their namespaces.
    await admission.grant(oil, alice, { resources: ["namespaces"], verbs: ["get", "patch", "update"] });
    const ready = { labels: { ready: "yes" } };
    await eventually(() => expect(patch(ready)(asAlice)).resolves.toMatchObject({ metadata: ready }));
  });

  it.each<[string, object]>([
    ["a Pod Security label", { labels: { "pod-security.kubernetes.io/enforce": "privileged" } }],
    ["the removal of one", { labels: { "pod-security.kubernetes.io/enforce": null } }],
    ["a scheduler annotation", { annotations: { "scheduler.alpha.kubernetes.io/defaultTolerations": "[]" } }],
    ["an annotation of Kubernetes", { annotations: { "node.kubernetes.io/x": "y" } }],
    ["a forbidden label", { labels: { team: "blue" } }],
    ["a label that the expression forbids", { labels: { "costs-more": "yes" } }],
    ["what no tenant can allow", { labels: { "kindstack.dev/owner-uid": "me" } }],
    ["the rules themselves", { annotations: { "kindstack.dev/allowed-labels": ".*" } }],
  ])("is kept from its owner: %s", async (_, metadata) => {
    await expect(patch(metadata)(asAlice)).rejects.toThrow(/cannot be changed by its owner|set by Kindstack alone/);
  });

  it.each<[string, object]>([
    ["an allowed label, though it is reserved", { labels: { "pod-security.kubernetes.io/warn": "restricted" } }],
    ["an allowed label, though it is forbidden", { labels: { "cost-center": "7" } }],
    ["a label of the application", { labels: { "app.kubernetes.io/part-of": "shop", stage: "dev" } }],
    ["kubectl's annotation", { annotations: { "kubectl.kubernetes.io/last-applied-configuration": "{}" } }],
  ])("may be set by its owner: %s", async (_, metadata) => {
    await expect(patch(metadata)(asAlice)).resolves.toMatchObject({ metadata });
  });

  it("may be set by administrators", async () => {
    const metadata = { labels: { team: "blue" } };
    await expect(patch(metadata)(admission.client)).resolves.toMatchObject({ metadata });
  });
});

it("a protected namespace cannot be given to a tenant, by no one", async () => {
  const type = await admission.client.resourceType("v1", "Namespace");
  const tenant = await admission.findTenant(oil);
  const give = (metadata: object) => admission.client.mergePatch(type, "kube-public", undefined, { metadata });

  await expect(give({ labels: { "capsule.clastix.io/tenant": oil } })).rejects.toThrow(
    "the namespace kube-public cannot be given to a tenant: the operator protects kube-*, default, kindstack-system",
  );
  await expect(give({ ownerReferences: [controllerReference(tenant)] })).rejects.toThrow("cannot be given to a tenant");
  const metadata = { labels: { other: "label" } };
  await expect(give(metadata)).resolves.toMatchObject({ metadata });
  await give({ labels: { other: null } });
});

describe("the Gateway API", () => {
  const GROUP = "gateway.networking.k8s.io";
  const text = { type: "string" };
  const list = (properties: object) => ({ type: "array", items: { type: "object", properties } });
  const reference = {
    group: text,
    kind: text,
    name: text,
    namespace: text,
    sectionName: text,
    port: { type: "integer" },
  };
  const listeners = list({ name: text, hostname: text, port: { type: "integer" }, protocol: text });
  const route = {
    hostnames: { type: "array", items: text },
    parentRefs: list(reference),
    rules: list({ backendRefs: list(reference) }),
  };
  const KINDS = {
    Gateway: { gatewayClassName: text, listeners },
    ListenerSet: { parentRef: { type: "object", properties: reference }, listeners },
    HTTPRoute: route,
    GRPCRoute: route,
    TLSRoute: route,
  };

  beforeAll(async () => {
    for (const [kind, spec] of Object.entries(KINDS)) {
      const plural = `${kind.toLowerCase()}s`;
      await admission.create({
        apiVersion: "apiextensions.k8s.io/v1",
        kind: "CustomResourceDefinition",
        metadata: {
          name: `${plural}.${GROUP}`,
          annotations: { "api-approved.kubernetes.io": "unapproved, for a test" },
        },
        spec: {
          ...{ group: GROUP, scope: "Namespaced", names: { kind, plural, singular: kind.toLowerCase() } },
          versions: [
            {
              ...{ name: "v1", served: true, storage: true },
              schema: {
                openAPIV3Schema: { type: "object", properties: { spec: { type: "object", properties: spec } } },
              },
            },
          ],
        },
      } as Manifest);
    }
    await admission.grant(oil, alice, { apiGroups: [GROUP], resources: ["*"], verbs: ["*"] });
    const ofEachKind = [gateway("default", HOST), listenerSet(HOST)].concat(
      ["HTTPRoute", "GRPCRoute", "TLSRoute"].map((kind) => routeOf(kind, [HOST])),
    );
    for (const served of ofEachKind) await eventually(() => create(asAlice, served, true));
  });

  const object = (kind: string, spec: object): Manifest => ({
    apiVersion: `${GROUP}/v1`,
    kind,
    metadata: { name: uniqueName("route"), namespace: oil },
    spec,
  });
  const routeOf = (kind: string, hostnames: string[], more: object = {}) => object(kind, { hostnames, ...more });
  const listenersOf = (hostnames: (string | undefined)[]) =>
    hostnames.map((hostname, index) => ({
      name: `l${index}`,
      port: 80,
      protocol: "HTTP",
      ...(hostname && { hostname }),
    }));
  const gateway = (gatewayClassName: string | undefined, ...hostnames: (string | undefined)[]) =>
    object("Gateway", { ...(gatewayClassName && { gatewayClassName }), listeners: listenersOf(hostnames) });
  const listenerSet = (...hostnames: (string | undefined)[]) =>
    object("ListenerSet", { parentRef: { name: "shared", namespace: "infra" }, listeners: listenersOf(hostnames) });
  const annotatedRoute = (host: string): Manifest => {
    const made = routeOf("HTTPRoute", [HOST]);
    const annotations = { "external-dns.alpha.kubernetes.io/hostname": host };
    return { ...made, metadata: { ...made.metadata, annotations } };
  };
  const shared = { parentRefs: [{ name: "shared", namespace: "infra" }] };
  const foreign = { rules: [{ backendRefs: [{ name: "web", namespace: free, port: 80 }] }] };
  const everywhere = (name: string) => (name === "Gateway" ? gateway("default", undefined) : listenerSet(undefined));

  it.each([
    ["a Gateway of its class and host", () => gateway("edge-7", HOST, "www.oil.example.com")],
    ["listeners of its hosts on another's Gateway", () => listenerSet(HOST)],
    ["a route of its host to a Gateway of another namespace", () => routeOf("HTTPRoute", [HOST], shared)],
    // The target's namespace decides, by a ReferenceGrant, which the Gateway's controller asks for.
    [
      "a route of its host to another namespace's Service",
      () => routeOf("GRPCRoute", [HOST], { ...shared, ...foreign }),
    ],
    ["a route of a host that the expression matches", () => routeOf("TLSRoute", ["www.oil.example.com"])],
  ])("lets an owner have %s", async (_, manifest) => {
    await expectAcceptance(asAlice, manifest());
  });

  it.each<[string, () => Manifest, string]>([
    ["a Gateway of another class", () => gateway("other", HOST), "the class of Gateways other is not allowed"],
    ["a Gateway without a class", () => gateway(undefined, HOST), "a class of Gateways must be named"],
    ["a Gateway with another host among its own", () => gateway("default", HOST, "x.org"), "x.org is not allowed"],
    ["a Gateway for all hosts", () => everywhere("Gateway"), "for all host names is not allowed"],
    ["a route of another host by ExternalDNS", () => annotatedRoute("x.org"), "x.org is not allowed"],
    ["listeners for another host", () => listenerSet("x.org"), "x.org is not allowed"],
    ["listeners for all hosts", () => everywhere("ListenerSet"), "for all host names is not allowed"],
    ...["HTTPRoute", "GRPCRoute", "TLSRoute"].flatMap((kind): [string, () => Manifest, string][] => [
      [`a ${kind} of another host`, () => routeOf(kind, [HOST, "x.org"], shared), "x.org is not allowed"],
      [`a ${kind} of a wildcard`, () => routeOf(kind, ["*.example.com"]), "*.example.com is not allowed"],
      [`a ${kind} for all hosts of a Gateway`, () => routeOf(kind, [], shared), "for all host names is not allowed"],
      [`a ${kind} without hosts`, () => object(kind, shared), "for all host names is not allowed"],
    ]),
  ])("lets no owner have %s", async (_, manifest, message) => {
    await expectRefusal(asAlice, manifest(), message);
  });

  it("lets no owner change a route to another host", async () => {
    const made = await create(asAlice, routeOf("HTTPRoute", [HOST]));
    const type = await admission.client.resourceType(made.apiVersion, made.kind);
    const change = asAlice.mergePatch(type, made.metadata.name, oil, { spec: { hostnames: ["x.org"] } });
    await expect(change).rejects.toThrow("x.org is not allowed");
  });
});

it("the cluster's own namespaces are bound by no policy", async () => {
  const inDefault = { ...ingress("public"), metadata: { name: uniqueName("web"), namespace: "default" } };

  await expectAcceptance(admission.client, inDefault);
  await expectAcceptance(admission.client, namespaceOf(uniqueName("plain")));
});

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type KubernetesClient, known, type Manifest } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { controllerReference } from "../../stacks/contract/object";
import { keyRuleAnnotations } from "../../stacks/kinds/capsule-tenant/namespace-metadata";
import { controlPlane } from "../control-plane";
import { NAMESPACE } from "../providers/kubernetes/test-cluster";
import { bindingFor } from "../rights";
import {
  at,
  create,
  expectAcceptance,
  expectRefusal,
  namespaceOf,
  pathOf,
  TENANT,
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
  const owner = { kind: "User", name: alice } as const;
  await admission.tenant(oil, {
    owner,
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
  await admission.tenant(free, { owner });
  const annotations = {
    "capsule.clastix.io/allowed-image-pull-policy": "Always, IfNotPresent",
    "priorityclass.capsule.clastix.io/allowed": batch,
    "priorityclass.capsule.clastix.io/allowed-regex": "",
    "capsule.clastix.io/enable-node-ports": "false",
    "capsule.clastix.io/enable-external-name": "false",
    "capsule.clastix.io/enable-loadbalancer-service": "false",
  };
  await admission.tenant(annotated, { owner }, annotations);
  for (const name of [batch, "never-mind"]) await admission.priorityClass(name);
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
const INGRESS_CLASS = "kubernetes.io/ingress.class";
const STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class";
const DNS_NAME = "external-dns.alpha.kubernetes.io/hostname";

function object(apiVersion: string, kind: string, spec: object): Manifest {
  return { apiVersion, kind, metadata: { name: uniqueName("web"), namespace: oil }, spec };
}
const annotate = (manifest: Manifest, key: string, value: string): Manifest => ({
  ...manifest,
  metadata: { ...manifest.metadata, annotations: { [key]: value } },
});

const annotation = (key: string, value: string) => ({ metadata: { annotations: { [key]: value } } });

const ingress = (ingressClassName?: string, spec: object = { rules: [{ host: HOST }] }) =>
  object("networking.k8s.io/v1", "Ingress", { ...(ingressClassName && { ingressClassName }), ...spec });
const hosts = (...names: (string | undefined)[]) =>
  ingress("default", { rules: names.map((host) => ({ ...(host !== undefined && { host }) })) });
const aliased = (value: string, key = "nginx.ingress.kubernetes.io/server-alias") => annotate(hosts(HOST), key, value);
const backend = { defaultBackend: { service: { name: "web", port: { number: 80 } } } };

function claim(storageClassName?: string): Manifest {
  const [accessModes, resources] = [["ReadWriteOnce"], { requests: { storage: "1Gi" } }];
  return object("v1", "PersistentVolumeClaim", {
    ...(storageClassName && { storageClassName }),
    accessModes,
    resources,
  });
}

const container = (image: string, imagePullPolicy = "Always") => ({ name: "app", image, imagePullPolicy });
const initContainer = (...given: Parameters<typeof container>) => ({
  initContainers: [{ ...container(...given), name: "init" }],
});
const pod = (image: string, more: object = {}, imagePullPolicy?: string) =>
  object("v1", "Pod", { containers: [container(image, imagePullPolicy)], ...more });
const onPort = (hostPort: number) => ({
  containers: [{ ...container("nginx"), ports: [{ containerPort: 80, hostPort }] }],
});
const imageVolume = (reference: string) => ({ volumes: [{ name: "v", image: { reference, pullPolicy: "Always" } }] });

const service = (externalIPs: string[], more: object = {}) =>
  object("v1", "Service", { ports: [{ port: 80 }], externalIPs, ...more });
const loadBalancer = (more: object = {}) =>
  service([], { type: "LoadBalancer", allocateLoadBalancerNodePorts: false, ...more });
const addressed = (key: string) => annotate(loadBalancer(), key, "10.20.3.4,1.2.3.4");
const named = (key: string, hosts: string) => annotate(service([]), `external-dns.kubernetes.io/${key}`, hosts);
const externalName = () => service([], { type: "ExternalName", externalName: "example.com" });

describe("a tenant's owner", () => {
  it.each([
    ["an ingress class of the list", ingress("internal")],
    ["an ingress class that the expression matches", ingress("edge-7")],
    ["an ingress class in the annotation", annotate(ingress(), INGRESS_CLASS, "default")],
    ["a host name of the list, and one that the expression matches", hosts(HOST, "www.oil.example.com")],
    ["a storage class of the list", claim("fast")],
    ["a storage class in the annotation", annotate(claim(), STORAGE_CLASS, "fast")],
    ["a registry with a port", pod("registry.example.com:5000/team/app:1")],
    ["Docker's registry, unnamed", pod("nginx")],
    ["Docker's registry, with a path", pod("library/nginx:1.27")],
    ["a priority class of the list", pod("nginx", { priorityClassName: batch })],
    ["a priority class that the expression matches", pod("nginx", { priorityClassName: "never-mind" })],
    ["a load balancer without node ports", loadBalancer()],
    ["a host name of the list for ExternalDNS", named("hostname", HOST)],
    ["an address in a range and another one", service(["10.20.3.4", "192.168.1.2"])],
    ["a Service without an external address", service([])],
  ])("may use %s", async (_, manifest) => {
    await expectAcceptance(asAlice, manifest);
  });

  const evil = "evil.example.com/app";
  it.each<[string, Manifest, string]>([
    ["another ingress class", ingress("public"), "allowed: default, internal, and what matches ^edge-[0-9]+$"],
    ["an ingress class like an allowed one", ingress("xedge-7"), "class xedge-7 is not allowed"],
    ["no ingress class", ingress(), "an ingress class must be named"],
    ["no ingress class by an empty annotation", annotate(ingress(), INGRESS_CLASS, ""), "must be named"],
    ["another class in the annotation", annotate(ingress(), INGRESS_CLASS, "public"), "class public is not allowed"],
    ["another one beside an allowed one", annotate(ingress("default"), INGRESS_CLASS, "public"), "public"],
    ["another host name", hosts(HOST, "gas.example.com"), `name gas.example.com is not allowed in the tenant ${oil}`],
    ["a rule for all hosts", hosts(HOST, undefined), "an Ingress for all host names is not allowed"],
    ["a default backend, which is for all hosts", ingress("default", backend), "for all host names is not allowed"],
    ["a wildcard", hosts("*.oil.example.com"), "host name *.oil.example.com is not allowed"],
    [
      "a certificate for another host name",
      ingress("default", { rules: [{ host: HOST }], tls: [{ hosts: [HOST, "gas.example.com"] }] }),
      "host name gas.example.com is not allowed",
    ],
    ["another storage class", claim("slow"), `storage class slow is not allowed in the tenant ${oil}; allowed: fast`],
    ["no storage class", claim(), "a storage class must be named"],
    ["another one in the annotation", annotate(claim("fast"), STORAGE_CLASS, "slow"), "class slow is not"],
    ["no storage class by an empty annotation", annotate(claim("fast"), STORAGE_CLASS, ""), "must be named"],
    ["another registry", pod(evil), "evil.example.com is not allowed"],
    ["another registry, and is told of its own", pod(evil), "allowed: registry.example.com:5000, docker.io"],
    ["another port of a registry", pod("registry.example.com/app"), "registry registry.example.com is not allowed"],
    ["a registry with a capital, which has no dot", pod("EVIL/x:1"), "registry EVIL is not allowed"],
    ["a capital in an allowed registry", pod("registry.EXAMPLE.com:5000/x"), "registry registry.EXAMPLE.com:5000"],
    ["a port alone", pod("evil:5000/x"), "registry evil:5000 is not allowed"],
    ["a local registry", pod("localhost/app"), "registry localhost is not allowed"],
    ["another registry for an init container", pod("nginx", initContainer(evil)), "evil.example.com"],
    ["another registry for an image volume", pod("nginx", imageVolume(evil)), "evil.example.com"],
    ["an image by its id", pod(`sha256:${"0".repeat(64)}`), "can be one that a node has"],
    ["an image by the beginning of its id", pod("0123456789ab"), "can be one that a node has"],
    ["another pull policy", pod("nginx", {}, "IfNotPresent"), "pull policy IfNotPresent is not allowed"],
    ["another one for an init container", pod("nginx", initContainer("nginx", "Never")), "pull policy Never is not"],
    ["another priority class", pod("nginx", { priorityClassName: "system-node-critical" }), "system-node-critical"],
    ["a host name by an alias", aliased("oil.example.com, gas.example.com"), "gas.example.com is not allowed"],
    ...[
      ...["haproxy-ingress.github.io/server-alias", "konghq.com/host-aliases", "ingress.kubernetes.io/redirect-from"],
      ...["appgw.ingress.kubernetes.io/hostname-extension", "nginx.ingress.kubernetes.io/Server-Alias"],
    ].map((key): [string, Manifest, string] => [
      `a host name by ${key}`,
      aliased("gas.example.com", key),
      "gas.example.com is not allowed",
    ]),
    [
      "host names by an expression, even one that the list matches",
      aliased("gas.example.com|oil.example.com", "haproxy-ingress.github.io/server-alias-regex"),
      "all host names",
    ],
    ["the network of the node", pod("nginx", { hostNetwork: true }), "of the node"],
    ["the processes of the node", pod("nginx", { hostPID: true }), "of the node"],
    ["a port of the node", pod("nginx", onPort(8080)), "of the node"],
    ["an address of a load balancer", loadBalancer({ loadBalancerIP: "1.2.3.4" }), "address 1.2.3.4 is not"],
    ["an address by an annotation", addressed("metallb.universe.tf/loadBalancerIPs"), "address 1.2.3.4 is not"],
    ["an address by another annotation", addressed("lbipam.cilium.io/ips"), "address 1.2.3.4 is not"],
    ["an address of PureLB", addressed("purelb.io/addresses"), "address 1.2.3.4 is not"],
    ["an address by its name", addressed("networking.gke.io/static-ip-name"), "address 1.2.3.4 is not"],
    ["an address outside the ranges", service(["10.21.0.1"]), `10.21.0.1 is not allowed in the tenant ${oil}`],
    ["one beside an allowed one", service(["10.20.3.4", "10.21.0.1"]), "allowed: 10.20.0.0/16, 192.168.1.2"],
    ["a host name of ExternalDNS", named("hostname", "gas.example.com"), "gas.example.com is not allowed"],
    ["an internal one", named("internal-hostname", `${HOST},x.org`), "x.org is not allowed"],
    ["a host name of ExternalDNS on a Pod", annotate(pod("nginx"), DNS_NAME, "x.org"), "x.org is not allowed"],
    ["a node port", service([], { type: "NodePort" }), "node ports are not allowed"],
    ["a load balancer with node ports", loadBalancer({ allocateLoadBalancerNodePorts: true }), "node ports"],
    ["one with a node port by number", loadBalancer({ ports: [{ port: 80, nodePort: 30123 }] }), "node ports"],
    ["one with health checks on the nodes", loadBalancer({ externalTrafficPolicy: "Local" }), "node ports"],
    ["an external name", externalName(), "ExternalName are not allowed"],
  ])("may not use %s", async (_, manifest, message) => {
    await expectRefusal(asAlice, manifest, message);
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

  it.each<[string, Manifest, object, string]>([
    ["an Ingress by its field", ingress("default"), { spec: { ingressClassName: "public" } }, "class public"],
    ["an Ingress by its annotation", ingress("default"), annotation(INGRESS_CLASS, "public"), "class public"],
    ["an Ingress without any class", ingress("default"), { spec: { ingressClassName: null } }, "must be named"],
    ["an Ingress by its hosts", hosts(HOST), { spec: { rules: [{ host: "gas.example.com" }] } }, "gas.example.com"],
    ["a claim by its annotation", claim("fast"), annotation(STORAGE_CLASS, "slow"), "field is immutable"],
    ["a Service by its type", service([]), { spec: { type: "NodePort" } }, "node ports"],
    ["a Service by a node port", loadBalancer(), { spec: { allocateLoadBalancerNodePorts: true } }, "node ports"],
    ["a Service by a name", service([]), { spec: { type: "ExternalName", externalName: "x.org" } }, "ExternalName"],
    [
      "a Service by its addresses",
      service(["10.20.0.1"]),
      { spec: { externalIPs: ["10.20.0.1", "10.21.0.1"] } },
      "10.21",
    ],
    ["a Pod by its image", pod("nginx"), { spec: { containers: [{ name: "app", image: "EVIL/x" }] } }, "EVIL"],
  ])(
    "cannot change %s to what is not allowed, and can change what else there is",
    async (_, manifest, patch, message) => {
      const made = await create(asAlice, manifest);
      const { name } = made.metadata;
      const type = await admission.client.resourceType(made.apiVersion, made.kind);

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
    const change = (patch: object) => asAlice.mergePatch(made, name, oil, patch);

    await admission.client.mergePatch(TENANT, oil, undefined, { spec: { ingressClasses: { allowed: ["default"] } } });

    await eventually(() => expectRefusal(asAlice, ingress("internal"), "allowed: default, and"));
    await expect(change(labelled)).resolves.toMatchObject(labelled);
    await expect(change({ spec: { ingressClassName: "public" } })).rejects.toThrow("public");
  });
});

describe("what Kindstack manages in a tenant's namespace", () => {
  const policy = (name: string, metadata: object = {}): Manifest => ({
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: { name, namespace: oil, ...metadata },
    spec: { podSelector: {} },
  });
  const managed = (name: string) => policy(name, { labels: { "kindstack.dev/owner-uid": "uid" } });

  it("cannot be changed, deleted or forged by its owner, who may do so with everything else", async () => {
    const [name, own] = [uniqueName("capsule"), uniqueName("own")];
    const type = await create(admission.client, managed(name));
    const message = `managed by Kindstack: only the Tenant ${oil}`;
    const narrowed = { spec: { policyTypes: ["Egress"] } };
    const unlabelled = { metadata: { labels: { "kindstack.dev/owner-uid": null } } };
    const all = `/apis/networking.k8s.io/v1/namespaces/${oil}/networkpolicies`;

    await expect(asAlice.mergePatch(type, name, oil, narrowed)).rejects.toThrow(message);
    await expect(asAlice.mergePatch(type, name, oil, unlabelled)).rejects.toThrow(message);
    await expect(asAlice.delete(type, name, oil)).rejects.toThrow(message);
    await expect(asAlice.json("DELETE", all)).rejects.toThrow(message);
    await expectRefusal(asAlice, managed(uniqueName("forged")), message);
    await create(asAlice, policy(own));
    await asAlice.delete(type, own, oil);
    expect(await known(admission.client.get(type, own, oil))).toBeUndefined();
    await expect(admission.client.mergePatch(type, name, oil, narrowed)).resolves.toMatchObject(narrowed);
  });

  it("goes with its namespace all the same", async () => {
    const name = uniqueName("short");
    await admission.tenantNamespace(name, oil, alice);
    await create(admission.client, at(name, managed("capsule")));

    await admission.client.delete(NAMESPACE, name);

    await eventually(async () => expect(await known(admission.client.get(NAMESPACE, name))).toBeUndefined());
  });

  it("has reserved names, by which no one else makes anything", async () => {
    const reserved = `capsule-${oil}-7`;
    await expectRefusal(asAlice, policy(reserved), `reserved for what Kindstack makes of the Tenant ${oil}`);
    await expectRefusal(asAlice, bindingFor([], "view", { name: reserved, namespace: oil }), "is reserved");
    await expectAcceptance(asAlice, policy(`capsule-${oil}`));
    await expectAcceptance(admission.client, policy(reserved));
  });
});

describe("metadata of a tenant's namespace", () => {
  const patch = (client: KubernetesClient, metadata: object) =>
    client.mergePatch(NAMESPACE, oil, undefined, { metadata });

  beforeAll(async () => {
    // The stack writes the rules of the tenant on the namespace.
    const annotations = keyRuleAnnotations(await admission.findTenant(oil));
    await patch(admission.client, { annotations, labels: { "pod-security.kubernetes.io/enforce": "baseline" } });
    // Some clusters let tenants' owners label their namespaces.
    await admission.grant(oil, alice, { resources: ["namespaces"], verbs: ["get", "patch", "update"] });
    const ready = { labels: { ready: "yes" } };
    await eventually(() => expect(patch(asAlice, ready)).resolves.toMatchObject({ metadata: ready }));
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
    await expect(patch(asAlice, metadata)).rejects.toThrow(/cannot be changed by its owner|set by Kindstack alone/);
  });

  it.each<[string, object]>([
    ["an allowed label, though it is reserved", { labels: { "pod-security.kubernetes.io/warn": "restricted" } }],
    ["an allowed label, though it is forbidden", { labels: { "cost-center": "7" } }],
    ["a label of the application", { labels: { "app.kubernetes.io/part-of": "shop", stage: "dev" } }],
    ["kubectl's annotation", { annotations: { "kubectl.kubernetes.io/last-applied-configuration": "{}" } }],
  ])("may be set by its owner: %s", async (_, metadata) => {
    await expect(patch(asAlice, metadata)).resolves.toMatchObject({ metadata });
  });

  it("may be set by administrators", async () => {
    const metadata = { labels: { team: "blue" } };
    await expect(patch(admission.client, metadata)).resolves.toMatchObject({ metadata });
  });
});

it("a protected namespace cannot be given to a tenant, by no one", async () => {
  const tenant = await admission.findTenant(oil);
  const give = (metadata: object) => admission.client.mergePatch(NAMESPACE, "kube-public", undefined, { metadata });

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
  const KINDS = ["Gateway", "ListenerSet", "HTTPRoute", "GRPCRoute", "TLSRoute"];

  beforeAll(async () => {
    const metadata = { annotations: { "api-approved.kubernetes.io": "unapproved, for a test" } };
    const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
    const versions = [{ name: "v1", served: true, storage: true, schema }];
    for (const kind of KINDS) {
      const [singular, plural] = [kind.toLowerCase(), `${kind.toLowerCase()}s`];
      await admission.create({
        apiVersion: "apiextensions.k8s.io/v1",
        kind: "CustomResourceDefinition",
        metadata: { name: `${plural}.${GROUP}`, ...metadata },
        spec: { group: GROUP, scope: "Namespaced", names: { kind, plural, singular }, versions },
      } as Manifest);
    }
    await admission.grant(oil, alice, { apiGroups: [GROUP], resources: ["*"], verbs: ["*"] });
    const routes = KINDS.slice(2).map((kind) => routeOf(kind, [HOST]));
    for (const served of [gateway("default", HOST), listenerSet(HOST), ...routes]) {
      await eventually(() => create(asAlice, served, true));
    }
  });

  const gatewayObject = (kind: string, spec: object) => object(`${GROUP}/v1`, kind, spec);
  const routeOf = (kind: string, hostnames: string[], more: object = {}) => gatewayObject(kind, { hostnames, ...more });
  const listeners = (hostnames: (string | undefined)[]) =>
    hostnames.map((hostname, index) => ({
      name: `l${index}`,
      port: 80,
      protocol: "HTTP",
      ...(hostname && { hostname }),
    }));
  const gateway = (gatewayClassName: string | undefined, ...hostnames: (string | undefined)[]) =>
    gatewayObject("Gateway", { ...(gatewayClassName && { gatewayClassName }), listeners: listeners(hostnames) });
  const parent = { name: "shared", namespace: "infra" };
  const listenerSet = (...hostnames: (string | undefined)[]) =>
    gatewayObject("ListenerSet", { parentRef: parent, listeners: listeners(hostnames) });
  const shared = { parentRefs: [parent] };
  const foreign = { rules: [{ backendRefs: [{ name: "web", namespace: free, port: 80 }] }] };

  it.each([
    ["a Gateway of its class and host", gateway("edge-7", HOST, "www.oil.example.com")],
    ["listeners of its hosts on another's Gateway", listenerSet(HOST)],
    ["a route of its host to a Gateway of another namespace", routeOf("HTTPRoute", [HOST], shared)],
    // The target's namespace decides, by a ReferenceGrant, which the Gateway's controller asks for.
    ["a route of its host to another namespace's Service", routeOf("GRPCRoute", [HOST], { ...shared, ...foreign })],
    ["a route of a host that the expression matches", routeOf("TLSRoute", ["www.oil.example.com"])],
  ])("lets an owner have %s", async (_, manifest) => {
    await expectAcceptance(asAlice, manifest);
  });

  it.each<[string, Manifest, string]>([
    ["a Gateway of another class", gateway("other", HOST), "the class of Gateways other is not allowed"],
    ["a Gateway without a class", gateway(undefined, HOST), "a class of Gateways must be named"],
    ["a Gateway with another host among its own", gateway("default", HOST, "x.org"), "x.org is not allowed"],
    ["a Gateway for all hosts", gateway("default", undefined), "for all host names is not allowed"],
    [
      "a route of another host by ExternalDNS",
      annotate(routeOf("HTTPRoute", [HOST]), DNS_NAME, "x.org"),
      "x.org is not",
    ],
    ["listeners for another host", listenerSet("x.org"), "x.org is not allowed"],
    ["listeners for all hosts", listenerSet(undefined), "for all host names is not allowed"],
    ...KINDS.slice(2).flatMap((kind): [string, Manifest, string][] => [
      [`a ${kind} of another host`, routeOf(kind, [HOST, "x.org"], shared), "x.org is not allowed"],
      [`a ${kind} of a wildcard`, routeOf(kind, ["*.example.com"]), "*.example.com is not allowed"],
      [`a ${kind} for all hosts of a Gateway`, routeOf(kind, [], shared), "for all host names is not allowed"],
      [`a ${kind} without hosts`, gatewayObject(kind, shared), "for all host names is not allowed"],
    ]),
  ])("lets no owner have %s", async (_, manifest, message) => {
    await expectRefusal(asAlice, manifest, message);
  });

  it("lets no owner change a route to another host", async () => {
    const made = await create(asAlice, routeOf("HTTPRoute", [HOST]));
    const change = asAlice.mergePatch(made, made.metadata.name, oil, { spec: { hostnames: ["x.org"] } });
    await expect(change).rejects.toThrow("x.org is not allowed");
  });
});

it("the cluster's own namespaces are bound by no policy", async () => {
  await expectAcceptance(admission.client, at("default", ingress("public")));
  await expectAcceptance(admission.client, namespaceOf(uniqueName("plain")));
});

import fc from "fast-check";
import type { Manifest } from "../../providers/kubernetes/client";
import type { CapsuleTenantSpec } from "../../stacks/kinds/capsule-tenant/schema";

/** Tenants, with little in common. */
export const TENANTS: Omit<CapsuleTenantSpec, "owner">[] = [
  {
    ingressClasses: { allowed: ["internal"], allowedRegex: "^edge-[0-9]+$" },
    ingressHostnames: {
      allowed: ["oil.example.com", "*.oil.example.com"],
      allowedRegex: "^[a-z]+[.]gas[.]example[.]com$",
    },
    storageClasses: { allowed: ["fast"], allowedRegex: "" },
    containerRegistries: { allowed: ["docker.io", "registry.example.com:5000"] },
    imagePullPolicies: ["Always"],
    allowedServices: { nodePort: false },
    externalServiceIPs: { allowed: ["10.20.0.0/16", "2001:db8::/48"] },
  },
  {
    ingressClasses: { allowedRegex: ".*" },
    ingressHostnames: { allowedRegex: "example" },
    storageClasses: { allowed: [""], allowedRegex: "^s" },
    containerRegistries: { allowedRegex: "[.]example[.]com$" },
    imagePullPolicies: ["IfNotPresent", "Never"],
    priorityClasses: { allowed: [] },
    allowedServices: { externalName: false, loadBalancer: false },
    externalServiceIPs: { allowed: [] },
  },
  { nodeSelector: { disk: "ssd", zone: "a" }, allowedServices: { nodePort: false, loadBalancer: true } },
  { containerRegistries: { allowed: ["localhost", "EVIL"] }, ingressHostnames: { allowed: [] }, storageClasses: {} },
];

type Values = readonly [unknown, ...unknown[]];
const oneOf = (...values: Values) => fc.constantFrom(...values);
/** Mostly absent keys, as in objects that people write. */
const maybe = (keys: Record<string, fc.Arbitrary<unknown>>) => fc.record(keys, { requiredKeys: [] });

const classes = oneOf("internal", "edge-7", "edge-x", "public", "fast", "slow", "");
const hosts = oneOf(
  ...(["oil.example.com", "*.oil.example.com", "a.gas.example.com", "a.b.gas.example.com", "*.com", "x.org"] as const),
);
const aliases = oneOf("oil.example.com", "", "x.org", "oil.example.com, ,a.gas.example.com", "*.oil.example.com,*.com");
const addresses = oneOf("10.20.3.4", "10.21.3.4", "2001:db8::1", "2001:db9::1", "192.168.1.2");
const images = oneOf(
  ...(["nginx", "nginx:1.27", "nginx:latest", `library/nginx@sha256:${"a".repeat(64)}`, "cafe", "decade:1"] as const),
  ...["registry.example.com:5000/app", "registry.example.com/app:1", "docker.io/app", "EVIL/app", "localhost/app:2"],
  ...["evil.example.com/app", `sha256:${"b".repeat(64)}`, "0123456789ab", "team/app", "localhost:5000/x:latest"],
);
const backend = { service: { name: "web", port: { number: 80 } } };

const ingress = fc.record({
  annotations: maybe({
    "kubernetes.io/ingress.class": classes,
    "nginx.ingress.kubernetes.io/server-alias": aliases,
    "external-dns.alpha.kubernetes.io/hostname": aliases,
  }),
  spec: fc
    .tuple(
      maybe({ ingressClassName: classes, defaultBackend: fc.constant(backend) }),
      fc.array(maybe({ host: hosts }), { maxLength: 3 }),
      fc.array(maybe({ hosts: fc.array(hosts, { maxLength: 2 }) }), { maxLength: 2 }),
    )
    .map(([rest, rules, tls]) => ({ ...rest, rules, tls })),
});

const claim = fc.record({
  annotations: maybe({ "volume.beta.kubernetes.io/storage-class": classes }),
  spec: maybe({ storageClassName: classes }).map((spec) => ({
    ...spec,
    accessModes: ["ReadWriteOnce"],
    resources: { requests: { storage: "1Gi" } },
  })),
});

const addressList = fc.array(addresses, { maxLength: 2 }).map((list) => list.join(","));
const service = fc.record({
  annotations: maybe({
    "metallb.universe.tf/loadBalancerIPs": addressList,
    "metallb.io/loadBalancerIPs": addressList,
    "kube-vip.io/loadbalancerIPs": addresses,
    "io.cilium/lb-ipam-ips": addressList,
    "lbipam.cilium.io/ips": addresses,
    "service.beta.kubernetes.io/azure-load-balancer-ipv4": addresses,
    "prometheus.io/scrape": oneOf("true", "10.99.0.1"),
  }),
  spec: fc.oneof(
    maybe({ type: oneOf("ClusterIP"), externalIPs: fc.uniqueArray(addresses, { maxLength: 2 }) }).map(withPorts),
    maybe({
      externalTrafficPolicy: oneOf("Local", "Cluster"),
      externalIPs: fc.uniqueArray(addresses, { maxLength: 2 }),
    }).map((spec) => withPorts({ ...spec, type: "NodePort" })),
    maybe({
      allocateLoadBalancerNodePorts: fc.boolean(),
      externalTrafficPolicy: oneOf("Local", "Cluster"),
      loadBalancerIP: addresses,
      nodePort: oneOf(30_500, 31_000),
    }).map(({ nodePort, ...spec }) => withPorts({ ...spec, type: "LoadBalancer" }, nodePort)),
    fc.constant({ type: "ExternalName", externalName: "x.org" }),
  ),
});

function withPorts(spec: object, nodePort?: unknown): object {
  return { ...spec, ports: [{ port: 80, ...(nodePort !== undefined && { nodePort }) }] };
}

const container = fc
  .tuple(images, maybe({ imagePullPolicy: oneOf("Always", "IfNotPresent", "Never"), hostPort: oneOf(8080) }))
  .map(([image, { hostPort, ...rest }]) => ({
    image,
    ...rest,
    ...(hostPort !== undefined && { ports: [{ containerPort: 80, hostPort }] }),
  }));
const named = (prefix: string) => (list: object[]) => list.map((one, index) => ({ name: `${prefix}${index}`, ...one }));

const pod = (priorityClasses: readonly string[]) =>
  fc.record({
    annotations: fc.constant({}),
    spec: fc
      .tuple(
        fc.array(container, { minLength: 1, maxLength: 2 }).map(named("c")),
        fc.array(container, { maxLength: 1 }).map(named("i")),
        maybe({
          hostPID: fc.boolean(),
          hostIPC: fc.boolean(),
          hostNetwork: fc.constant(false),
          priorityClassName: fc.constantFrom(...priorityClasses),
          nodeSelector: maybe({ disk: oneOf("ssd", "hdd"), zone: oneOf("a", "b"), other: oneOf("x") }),
        }),
        fc.option(maybe({ pullPolicy: oneOf("Always", "IfNotPresent", "Never") }), { freq: 5, nil: undefined }),
        images,
      )
      .map(([containers, initContainers, rest, volume, reference]) => ({
        ...rest,
        containers,
        initContainers,
        ...(volume && { volumes: [{ name: "data", image: { reference, ...volume } }] }),
      })),
  });

/** A new object for one of {@link TENANTS}, by its index. */
export function tenantObjects(
  priorityClasses: readonly string[],
): fc.Arbitrary<{ tenant: number; manifest: Manifest }> {
  const made = (apiVersion: string, kind: string, content: fc.Arbitrary<{ annotations: object; spec: object }>) =>
    content.map(
      ({ annotations, spec }) => ({ apiVersion, kind, metadata: { name: "any", annotations }, spec }) as Manifest,
    );
  return fc.record({
    tenant: fc.nat(TENANTS.length - 1),
    manifest: fc.oneof(
      made("networking.k8s.io/v1", "Ingress", ingress),
      made("v1", "PersistentVolumeClaim", claim),
      made("v1", "Service", service),
      made("v1", "Pod", pod(priorityClasses)),
    ),
  });
}

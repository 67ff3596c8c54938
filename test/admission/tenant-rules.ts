import { BlockList, isIP } from "node:net";
import type { Manifest } from "../../providers/kubernetes/client";
import type { CapsuleTenantSpec } from "../../stacks/kinds/capsule-tenant/schema";

/*
 * A second reading of what a Tenant allows: written from its documentation and from how Kubernetes reads objects, with
 * nothing of the policies' own.
 */

type Lists = { allowed?: string[]; allowedRegex?: string } | undefined;
type Rule = (tenant: CapsuleTenantSpec, object: Any) => boolean;
// biome-ignore lint/suspicious/noExplicitAny: objects as they are sent
type Any = any;

/** Whether the Tenant allows a new object. */
export function isAllowed(tenant: CapsuleTenantSpec, manifest: Manifest): boolean {
  const rules = RULES[manifest.kind] ?? [];
  return rules.every((rule) => rule(tenant, manifest));
}

function isListed(list: Lists, value: string): boolean {
  if (list === undefined || list.allowed?.includes(value)) return true;
  return value !== "" && !!list.allowedRegex && new RegExp(list.allowedRegex).test(value);
}

const annotation = (object: Any, key: string): string | undefined => object.metadata.annotations?.[key];
const items = (text: string | undefined) =>
  (text ?? "")
    .split(",")
    .map((item) => item.trim())
    .filter(Boolean);

const ingressClass: Rule = ({ ingressClasses }, object) => {
  if (ingressClasses === undefined) return true;
  const name = annotation(object, "kubernetes.io/ingress.class") ?? object.spec.ingressClassName;
  return name !== undefined && isListed(ingressClasses, name);
};

const namesInDns = (object: Any) =>
  ["hostname", "internal-hostname"].flatMap((name) =>
    items(annotation(object, `external-dns.alpha.kubernetes.io/${name}`)),
  );

const serviceHosts: Rule = ({ ingressHostnames }, object) =>
  ingressHostnames === undefined || namesInDns(object).every((host) => isListed(ingressHostnames, host));

const ingressHosts: Rule = ({ ingressHostnames }, object) => {
  if (ingressHostnames === undefined) return true;
  const { rules = [], tls = [], defaultBackend } = object.spec;
  if (defaultBackend || rules.some(({ host }: Any) => !host)) return false;
  const hosts = [
    ...rules.map(({ host }: Any) => host),
    ...tls.flatMap(({ hosts = [] }: Any) => hosts),
    ...items(annotation(object, "nginx.ingress.kubernetes.io/server-alias")),
    ...namesInDns(object),
  ];
  return hosts.every((host) => isListed(ingressHostnames, host));
};

const storageClass: Rule = ({ storageClasses }, object) => {
  if (storageClasses === undefined) return true;
  const name = annotation(object, "volume.beta.kubernetes.io/storage-class") ?? object.spec.storageClassName;
  return name !== undefined && isListed(storageClasses, name);
};

const serviceType: Rule = ({ allowedServices = {} }, { spec }) => {
  const { type = "ClusterIP" } = spec;
  if (type === "ExternalName") return allowedServices.externalName !== false;
  if (type === "NodePort") return allowedServices.nodePort !== false;
  if (type !== "LoadBalancer") return true;
  const opensPorts =
    spec.allocateLoadBalancerNodePorts !== false ||
    spec.externalTrafficPolicy === "Local" ||
    spec.ports.some(({ nodePort }: Any) => nodePort);
  return allowedServices.loadBalancer !== false && (allowedServices.nodePort !== false || !opensPorts);
};

const ADDRESS_ANNOTATIONS = [
  "metallb.universe.tf/loadBalancerIPs",
  "metallb.io/loadBalancerIPs",
  "kube-vip.io/loadbalancerIPs",
  "io.cilium/lb-ipam-ips",
  "lbipam.cilium.io/ips",
  "service.beta.kubernetes.io/azure-load-balancer-ipv4",
];

const externalAddresses: Rule = ({ externalServiceIPs }, object) => {
  if (externalServiceIPs === undefined) return true;
  const { externalIPs = [], loadBalancerIP } = object.spec;
  const annotated = ADDRESS_ANNOTATIONS.flatMap((key) => items(annotation(object, key)));
  const addresses: string[] = [...externalIPs, ...(loadBalancerIP ? [loadBalancerIP] : []), ...annotated];
  const list = new BlockList();
  for (const range of externalServiceIPs.allowed) {
    const [address = "", length] = range.split("/");
    const family = isIP(address) === 6 ? "ipv6" : "ipv4";
    if (length === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(length), family);
  }
  return addresses.every((one) => isIP(one) !== 0 && list.check(one, isIP(one) === 6 ? "ipv6" : "ipv4"));
};

interface Image {
  image: string;
  policy?: string | undefined;
}

function imagesOf({ containers = [], initContainers = [], volumes = [] }: Any): Image[] {
  const own = [...containers, ...initContainers].map(({ image, imagePullPolicy }: Any) => ({
    image,
    policy: imagePullPolicy,
  }));
  const mounted = volumes.flatMap(({ image }: Any) =>
    image ? [{ image: image.reference, policy: image.pullPolicy }] : [],
  );
  return [...own, ...mounted];
}

const registries: Rule = ({ containerRegistries }, { spec }) =>
  containerRegistries === undefined ||
  imagesOf(spec).every(({ image }) => {
    const [first = "", ...path] = image.split("/");
    if (path.length === 0 && (/^[0-9a-f]+$/.test(image) || image.startsWith("sha256:"))) {
      return isListed(containerRegistries, image);
    }
    const isHost = path.length > 0 && (/[.:]/.test(first) || first === "localhost" || first !== first.toLowerCase());
    return isListed(containerRegistries, isHost ? first : "docker.io");
  });

const pullPolicies: Rule = ({ imagePullPolicies }, { spec }) =>
  imagePullPolicies === undefined ||
  imagesOf(spec).every(({ image, policy }) => {
    const name = image.split("/").at(-1) ?? "";
    const [tagged = "", digest] = name.split("@");
    const tag = tagged.split(":")[1] ?? (digest ? "" : "latest");
    return imagePullPolicies.includes((policy ?? (tag === "latest" ? "Always" : "IfNotPresent")) as "Always");
  });

const priorityClass: Rule = ({ priorityClasses }, { spec }) =>
  !spec.priorityClassName || isListed(priorityClasses, spec.priorityClassName);

const onTheNode: Rule = ({ allowedServices }, { spec }) => {
  if (allowedServices?.nodePort !== false) return true;
  if (spec.hostNetwork || spec.hostPID || spec.hostIPC) return false;
  const containers = [...(spec.containers ?? []), ...(spec.initContainers ?? [])];
  return !containers.some(({ ports = [] }: Any) => ports.some(({ hostPort }: Any) => hostPort));
};

const nodes: Rule = ({ nodeSelector = {} }, { spec }) =>
  Object.entries(nodeSelector).every(([key, value]) => spec.nodeSelector?.[key] === value);

const RULES: Record<string, Rule[]> = {
  Ingress: [ingressClass, ingressHosts],
  PersistentVolumeClaim: [storageClass],
  Service: [serviceType, serviceHosts, externalAddresses],
  Pod: [registries, pullPolicies, priorityClass, onTheNode, nodes],
};

import { allowedList, type Restriction } from "./allowed-list";
import type { ResourceRule } from "./policy";
import { SERVICES, serviceTypes } from "./service-types";

const INGRESSES: ResourceRule = { apiGroups: ["networking.k8s.io"], resources: ["ingresses"] };
const CLAIMS: ResourceRule = { apiGroups: [""], resources: ["persistentvolumeclaims"] };
/** The subresource is the one way to add containers to Pods that run. */
const PODS: ResourceRule = { apiGroups: [""], resources: ["pods", "pods/ephemeralcontainers"] };

/** In CEL: the class in a field of the specification and the one in an annotation; both are looked at. */
const classesOf = (field: string, annotation: string) => (object: string) =>
  `[string(${object}.spec.?${field}.orValue('')), ` +
  `string(${object}.metadata.?annotations[?'${annotation}'].orValue(''))].filter(name, name != '')`;

/** In CEL: all containers of a Pod, of whatever kind. */
const containersOf = (object: string) =>
  `(${["containers", "initContainers", "ephemeralContainers"].map((list) => `${object}.spec.?${list}.orValue([])`).join(" + ")})`;

const imageVolumesOf = (object: string) =>
  `${object}.spec.?volumes.orValue([]).filter(volume, has(volume.image)).map(volume, volume.image)`;

/** All that a tenant may be restricted in. */
export const RESTRICTIONS: readonly Restriction[] = [
  allowedList({
    field: "ingressClasses",
    rule: INGRESSES,
    called: "an ingress class",
    isRequired: true,
    // Controllers still obey the annotation.
    used: classesOf("ingressClassName", "kubernetes.io/ingress.class"),
  }),
  allowedList({
    field: "ingressHostnames",
    rule: INGRESSES,
    called: "a host name",
    // An Ingress for all hosts, by a rule without a host or by a default backend, would take those of others as well.
    used: (object) =>
      `${object}.spec.?rules.orValue([]).map(rule, rule.?host.orValue('')) + ` +
      `${object}.spec.?tls.orValue([]).map(tls, tls.?hosts.orValue([])).flatten() + ` +
      `(has(${object}.spec.defaultBackend) ? [''] : [])`,
    isAllowed: (host, isListed) => `(${host} != '' && ${isListed})`,
    refusal: (host, named) => `(${host} == '' ? 'an Ingress for all host names is not allowed' : ${named})`,
  }),
  allowedList({
    field: "storageClasses",
    rule: CLAIMS,
    called: "a storage class",
    isRequired: true,
    // The annotation wins over the field.
    used: classesOf("storageClassName", "volume.beta.kubernetes.io/storage-class"),
  }),
  allowedList({
    field: "containerRegistries",
    rule: PODS,
    called: "a registry",
    used: (object) =>
      `${containersOf(object)}.map(container, container.?image.orValue('')) + ` +
      `${imageVolumesOf(object)}.map(image, image.?reference.orValue(''))`,
    // The first part of an image is its registry when it can be a host: with a dot, a port or a capital, or `localhost`, as
    // container runtimes read it (distribution/reference, `splitDockerDomain`). What has none is Docker's.
    compared: (image) =>
      `(${image}.contains('/') && ${image}.split('/')[0].matches('[.:A-Z]|^localhost$') ? ${image}.split('/')[0] : 'docker.io')`,
  }),
  allowedList({
    field: "imagePullPolicies",
    rule: PODS,
    called: "an image pull policy",
    used: (object) =>
      `${containersOf(object)}.map(container, container.?imagePullPolicy.orValue('') + ' ' + container.name) + ` +
      `${imageVolumesOf(object)}.map(image, image.?pullPolicy.orValue('') + ' ' + image.?reference.orValue(''))`,
    compared: (policyAndName) => `${policyAndName}.split(' ')[0]`,
    allowed: "params.spec.?imagePullPolicies.orValue([])",
    regex: "''",
    annotations: { allowed: "capsule.clastix.io/allowed-image-pull-policy" },
  }),
  allowedList({
    field: "priorityClasses",
    rule: PODS,
    called: "a priority class",
    // Where the cluster has a default class, the API server has set it by then, so that it must be allowed by name.
    used: (object) => `[${object}.spec.?priorityClassName.orValue('')].filter(name, name != '')`,
    annotations: {
      allowed: "priorityclass.capsule.clastix.io/allowed",
      regex: "priorityclass.capsule.clastix.io/allowed-regex",
    },
  }),
  allowedList({
    field: "externalServiceIPs",
    rule: SERVICES,
    called: "an external address",
    used: (object) => `${object}.spec.?externalIPs.orValue([])`,
    regex: "''",
    isAllowed: (address) =>
      `(isIP(${address}) && variables.externalServiceIPsAllowed.exists(range, isCIDR(range) ? cidr(range).containsIP(ip(${address})) : ip(range) == ip(${address})))`,
  }),
  serviceTypes,
];

import type { ResourceRule } from "../../../contract/index";
import { allowedList, type Restriction } from "./allowed-list";
import { ADDRESS_KEYS, ALIAS_EXPRESSION_KEYS, ALIAS_KEYS, DNS_KEYS } from "./controllers";
import { hostPorts, SERVICES, serviceTypes } from "./service-types";
import { uncomparedNames, uncomparedRouting } from "./uncompared";

const scope = "Namespaced";
const INGRESSES: ResourceRule = { apiGroups: ["networking.k8s.io"], resources: ["ingresses"], scope };
/** Of the Gateway API, which need not be served. */
const GATEWAYS: ResourceRule = { apiGroups: ["gateway.networking.k8s.io"], resources: ["gateways"], scope };
const HOSTS_OF_GATEWAYS: ResourceRule = {
  apiGroups: ["gateway.networking.k8s.io", "gateway.networking.x-k8s.io"],
  resources: ["gateways", "listenersets", "xlistenersets", "httproutes", "grpcroutes", "tlsroutes"],
  scope,
};
const CLAIMS: ResourceRule = { apiGroups: [""], resources: ["persistentvolumeclaims"], scope };
/** The subresource is the one way to add containers to Pods that run. */
const PODS: ResourceRule = { apiGroups: [""], resources: ["pods", "pods/ephemeralcontainers"], scope };

const STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class";
const INGRESS_CLASS = "kubernetes.io/ingress.class";
/** In CEL: an annotation, if there is one. */
const annotationOf = (object: string, key: string) => `${object}.metadata.?annotations[?'${key}']`;

/** In CEL: the keys of annotations that an expression matches. */
const keysIn = (object: string, expression: string) =>
  `${object}.metadata.?annotations.orValue({}).filter(key, key.matches(${JSON.stringify(expression)}))`;

/** In CEL: what these annotations list, with commas between the items. */
const listedIn = (object: string, expression: string) =>
  `${keysIn(object, expression)}.map(key, ${object}.metadata.annotations[key].split(',').map(item, item.trim())).flatten().filter(item, item != '')`;

/** In CEL: whether container runtimes could take an image for the id of one that a node has, or for the beginning of one. */
const isImageId = (image: string) => `${image}.matches('^(sha[0-9]+:.*|[0-9a-f]+)$')`;

/** In CEL: all containers of a Pod, of whatever kind. */
const containersOf = (object: string) =>
  `(${["containers", "initContainers", "ephemeralContainers"].map((list) => `${object}.spec.?${list}.orValue([])`).join(" + ")})`;

const imageVolumesOf = (object: string) =>
  `${object}.spec.?volumes.orValue([]).filter(volume, has(volume.image)).map(volume, volume.image)`;

export const RESTRICTIONS: readonly Restriction[] = [
  allowedList({
    field: "ingressClasses",
    rule: INGRESSES,
    called: "an ingress class",
    isRequired: true,
    // Controllers obey the annotation or the field, and an Ingress that was changed may have both.
    used: (object) =>
      `(${object}.spec.?ingressClassName.orValue('') == '' ? [] : [string(${object}.spec.ingressClassName)]) + ` +
      `(${annotationOf(object, INGRESS_CLASS)}.hasValue() ? [string(${annotationOf(object, INGRESS_CLASS)}.value())] : [])`,
  }),
  allowedList({
    field: "ingressClasses",
    variables: "gatewayClasses",
    rule: GATEWAYS,
    called: "a class of Gateways",
    used: (object) => `[string(${object}.spec.?gatewayClassName.orValue(''))]`,
  }),
  allowedList({
    field: "ingressHostnames",
    rule: INGRESSES,
    called: "a host name",
    // An Ingress for all hosts, by a rule without a host, a default backend or an expression, would take those of others as well.
    used: (object) =>
      `${object}.spec.?rules.orValue([]).map(rule, rule.?host.orValue('')) + ` +
      `${object}.spec.?tls.orValue([]).map(tls, tls.?hosts.orValue([])).flatten() + ` +
      `(has(${object}.spec.defaultBackend) ? [''] : []) + ${listedIn(object, `${ALIAS_KEYS}|${DNS_KEYS}`)} + ` +
      `${keysIn(object, ALIAS_EXPRESSION_KEYS)}.map(key, '')`,
    isAllowed: (host, isListed) => `(${host} != '' && ${isListed})`,
    refusal: (host, named) => `(${host} == '' ? 'an Ingress for all host names is not allowed' : ${named})`,
  }),
  allowedList({
    field: "ingressHostnames",
    variables: "routeHostnames",
    rule: HOSTS_OF_GATEWAYS,
    called: "a host name",
    used: (object) =>
      `(has(${object}.spec.listeners) ? ${object}.spec.listeners.map(listener, listener.?hostname.orValue('')) : ` +
      `size(${object}.spec.?hostnames.orValue([])) == 0 ? [''] : ${object}.spec.hostnames) + ${listedIn(object, DNS_KEYS)}`,
    isAllowed: (host, isListed) => `(${host} != '' && ${isListed})`,
    refusal: (host, named) => `(${host} == '' ? 'a Gateway or route for all host names is not allowed' : ${named})`,
  }),
  allowedList({
    field: "ingressHostnames",
    variables: "serviceHostnames",
    rule: SERVICES,
    called: "a host name",
    used: (object) => listedIn(object, DNS_KEYS),
  }),
  allowedList({
    field: "ingressHostnames",
    variables: "podHostnames",
    rule: PODS,
    called: "a host name",
    used: (object) => listedIn(object, DNS_KEYS),
  }),
  { ...uncomparedRouting, rule: INGRESSES },
  ...[INGRESSES, SERVICES, PODS, HOSTS_OF_GATEWAYS].map((rule) => ({ ...uncomparedNames, rule })),
  allowedList({
    field: "storageClasses",
    rule: CLAIMS,
    called: "a storage class",
    isRequired: true,
    // The annotation wins over the field when it is there, even when it is empty: then volumes without a class are taken.
    used: (object) =>
      `(${annotationOf(object, STORAGE_CLASS)}.hasValue() ? [string(${annotationOf(object, STORAGE_CLASS)}.value())] : ` +
      `has(${object}.spec.storageClassName) ? [string(${object}.spec.storageClassName)] : [])`,
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
      `(${isImageId(image)} ? ${image} : ${image}.contains('/') && ${image}.split('/')[0].matches('[.:A-Z]|^localhost$') ? ${image}.split('/')[0] : 'docker.io')`,
    refusal: (registry, named) =>
      `(${isImageId(registry)} ? 'the image ' + ${registry} + ' can be one that a node has, by its id: name its registry, as well' : ${named})`,
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
    used: (object) =>
      `${object}.spec.?externalIPs.orValue([]) + [${object}.spec.?loadBalancerIP.orValue('')].filter(ip, ip != '') + ` +
      listedIn(object, ADDRESS_KEYS),
    regex: "''",
    isAllowed: (address) =>
      `(isIP(${address}) && variables.externalServiceIPsAllowed.exists(range, isCIDR(range) ? cidr(range).containsIP(ip(${address})) : ip(range) == ip(${address})))`,
  }),
  serviceTypes,
  { ...hostPorts, rule: PODS },
  {
    appliesTo: ({ spec: { nodeSelector = {} } }) => Object.keys(nodeSelector).length > 0,
    rule: PODS,
    validations: [
      {
        // Clusters with the admission plugin PodNodeSelector have set it by then.
        expression:
          "oldObject != null || params.spec.?nodeSelector.orValue({}).all(key, " +
          "object.spec.?nodeSelector[?key].orValue('') == params.spec.nodeSelector[key])",
        messageExpression:
          "'Pods of the tenant ' + params.metadata.name + ' must have the nodeSelector ' + " +
          "params.spec.nodeSelector.map(key, key + ': ' + params.spec.nodeSelector[key]).join(', ')",
      },
    ],
  },
];

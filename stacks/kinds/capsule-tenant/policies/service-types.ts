import type { ResourceRule, Validation } from "../../../contract/index";
import type { CapsuleTenant, CapsuleTenantSpec } from "../schema";
import { type Restriction, tenantAnnotation } from "./allowed-list";

export const SERVICES: ResourceRule = { apiGroups: [""], resources: ["services"], scope: "Namespaced" };

interface ServiceType {
  field: keyof NonNullable<CapsuleTenantSpec["allowedServices"]>;
  /** Capsule's annotation that turns it off, with the value `false`. */
  annotation: string;
  /** In messages, after "Services". */
  called: string;
  /** What may be done instead. */
  hint?: string;
  /** In CEL: whether a Service is of this type. */
  isOfType(object: string): string;
}

const isOf = (object: string, type: string) => `(${object}.spec.?type.orValue('ClusterIP') == '${type}')`;

const NODE_PORTS: ServiceType = {
  field: "nodePort",
  annotation: "capsule.clastix.io/enable-node-ports",
  called: "with node ports",
  hint: "; a load balancer has none with allocateLoadBalancerNodePorts: false and the external traffic policy Cluster",
  // A load balancer opens ports of the nodes as well, unless it is told not to and none is asked for by number; with the
  // traffic policy Local it has one for its health checks in any case.
  isOfType: (object) =>
    `(${isOf(object, "NodePort")} || (${isOf(object, "LoadBalancer")} && ` +
    `(${object}.spec.?allocateLoadBalancerNodePorts.orValue(true) || ${object}.spec.?externalTrafficPolicy.orValue('') == 'Local' || ` +
    `${object}.spec.?ports.orValue([]).exists(port, port.?nodePort.orValue(0) != 0))))`,
};

const TYPES: readonly ServiceType[] = [
  NODE_PORTS,
  {
    field: "externalName",
    annotation: "capsule.clastix.io/enable-external-name",
    called: "of the type ExternalName",
    isOfType: (object) => isOf(object, "ExternalName"),
  },
  {
    field: "loadBalancer",
    annotation: "capsule.clastix.io/enable-loadbalancer-service",
    called: "of the type LoadBalancer",
    isOfType: (object) => isOf(object, "LoadBalancer"),
  },
];

function isOff({ metadata, spec }: CapsuleTenant, { field, annotation }: ServiceType): boolean {
  return !(spec.allowedServices?.[field] ?? metadata.annotations?.[annotation] !== "false");
}

const isAllowed = ({ field, annotation }: ServiceType) =>
  `params.spec.?allowedServices.?${field}.orValue(${tenantAnnotation(annotation)} != 'false')`;

function validation(type: ServiceType): Validation {
  const { called, hint = "", isOfType } = type;
  return {
    expression: `${isAllowed(type)} || !${isOfType("object")} || (oldObject != null && ${isOfType("oldObject")})`,
    messageExpression: `'Services ${called} are not allowed in the tenant ' + params.metadata.name${hint && ` + '${hint}'`}`,
  };
}

const HOST_NAMESPACES = ["hostNetwork", "hostPID", "hostIPC"];
const isOnHost = (object: string) =>
  `(${HOST_NAMESPACES.map((field) => `${object}.spec.?${field}.orValue(false)`).join(" || ")} || ` +
  `(${["containers", "initContainers"].map((list) => `${object}.spec.?${list}.orValue([])`).join(" + ")})` +
  ".exists(container, container.?ports.orValue([]).exists(port, port.?hostPort.orValue(0) != 0)))";

/** Where Services may have no ports of the nodes, Pods may not have them either, nor be in namespaces of the nodes. */
export const hostPorts: Omit<Restriction, "rule"> = {
  appliesTo: (tenant) => isOff(tenant, NODE_PORTS),
  validations: [
    {
      expression: `${isAllowed(NODE_PORTS)} || !${isOnHost("object")} || (oldObject != null && ${isOnHost("oldObject")})`,
      messageExpression:
        "'Pods with ports of the node, or in its network or other namespaces, are not allowed in the tenant ' + params.metadata.name",
    },
  ],
};

/** Types of Services that are turned off. A Service that is of such a type already may stay so. */
export const serviceTypes: Restriction = {
  appliesTo: (tenant) => TYPES.some((type) => isOff(tenant, type)),
  rule: SERVICES,
  validations: TYPES.map(validation),
};

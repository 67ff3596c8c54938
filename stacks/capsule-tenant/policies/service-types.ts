import { EXTERNAL_NAME_ANNOTATION, LOAD_BALANCER_ANNOTATION, NODE_PORTS_ANNOTATION } from "../labels";
import type { CapsuleTenant, CapsuleTenantSpec } from "../schema";
import type { Validation } from "./policy";
import { type Restriction, tenantAnnotation } from "./restriction";

interface ServiceType {
  field: keyof NonNullable<CapsuleTenantSpec["allowedServices"]>;
  /** Capsule's annotation that turned it off, with the value `false`. */
  annotation: string;
  /** In CEL: whether a Service is of this type. */
  isOfType(object: string): string;
  /** For people. */
  message: string;
}

const isOf = (object: string, type: string) => `(${object}.spec.?type.orValue('ClusterIP') == '${type}')`;

/**
 * A load balancer opens ports of the nodes as well, unless it is told not to and none is asked for by number; with the
 * traffic policy Local it has one for its health checks in any case.
 */
const NODE_PORT: ServiceType = {
  field: "nodePort",
  annotation: NODE_PORTS_ANNOTATION,
  isOfType: (object) =>
    `(${isOf(object, "NodePort")} || (${isOf(object, "LoadBalancer")} && ` +
    `(${object}.spec.?allocateLoadBalancerNodePorts.orValue(true) || ${object}.spec.?externalTrafficPolicy.orValue('') == 'Local' || ` +
    `${object}.spec.?ports.orValue([]).exists(port, port.?nodePort.orValue(0) != 0))))`,
  message:
    "'Services with node ports are not allowed in the tenant ' + params.metadata.name + '; a load balancer has none with allocateLoadBalancerNodePorts: false and the external traffic policy Cluster'",
};

const EXTERNAL_NAME: ServiceType = {
  field: "externalName",
  annotation: EXTERNAL_NAME_ANNOTATION,
  isOfType: (object) => isOf(object, "ExternalName"),
  message: "'Services of the type ExternalName are not allowed in the tenant ' + params.metadata.name",
};

const LOAD_BALANCER: ServiceType = {
  field: "loadBalancer",
  annotation: LOAD_BALANCER_ANNOTATION,
  isOfType: (object) => isOf(object, "LoadBalancer"),
  message: "'Services of the type LoadBalancer are not allowed in the tenant ' + params.metadata.name",
};

const TYPES = [NODE_PORT, EXTERNAL_NAME, LOAD_BALANCER];

function isOff({ metadata, spec }: CapsuleTenant, { field, annotation }: ServiceType): boolean {
  return !(spec.allowedServices?.[field] ?? metadata.annotations?.[annotation] !== "false");
}

function validation({ field, annotation, isOfType, message }: ServiceType): Validation {
  const isAllowed = `params.spec.?allowedServices.?${field}.orValue(${tenantAnnotation(annotation)} != 'false')`;
  return {
    expression: `${isAllowed} || !${isOfType("object")} || (oldObject != null && ${isOfType("oldObject")})`,
    messageExpression: message,
  };
}

/** Types of Services that are turned off. A Service that is of such a type already may stay so. */
export const serviceTypes: Restriction = {
  appliesTo: (tenant) => TYPES.some((type) => isOff(tenant, type)),
  rules: [{ apiGroups: [""], resources: ["services"] }],
  variables: {},
  validations: TYPES.map(validation),
};

import type { Manifest } from "../../../../providers/kubernetes/index";
import type { KindObject } from "../../../contract/index";
import { TENANT_LABEL } from "../labels";

const API_VERSION = "admissionregistration.k8s.io/v1";

export interface ResourceRule {
  apiGroups: string[];
  resources: string[];
  /** Default: CREATE and UPDATE. */
  operations?: string[];
}

/** What must be true, in CEL, and what the user is told when it is not: a CEL expression of a string. */
export interface Validation {
  expression: string;
  messageExpression: string;
}

export interface PolicySpec {
  rules: readonly ResourceRule[];
  /** Named CEL expressions, evaluated when they are first used. */
  variables: Readonly<Record<string, string>>;
  validations: readonly Validation[];
  /** More fields of the policy's specification. */
  [field: string]: unknown;
}

/** A policy that the API server evaluates itself, so that it cannot be down. */
export function validatingPolicy(name: string, { rules, variables, validations, ...rest }: PolicySpec): Manifest {
  return {
    apiVersion: API_VERSION,
    kind: "ValidatingAdmissionPolicy",
    metadata: { name },
    spec: {
      // An expression that cannot be evaluated refuses: it guards what tenants may do to each other.
      failurePolicy: "Fail",
      matchConstraints: {
        resourceRules: rules.map((rule) => ({
          operations: ["CREATE", "UPDATE"],
          ...rule,
          apiVersions: ["*"],
          scope: "*",
        })),
      },
      variables: Object.entries(variables).map(([variable, expression]) => ({ name: variable, expression })),
      validations: validations.map((validation) => ({ ...validation, reason: "Forbidden" })),
      ...rest,
    },
  };
}

export function policyBinding(policyName: string, name: string, spec: object = {}): Manifest {
  return {
    apiVersion: API_VERSION,
    kind: "ValidatingAdmissionPolicyBinding",
    metadata: { name },
    spec: { policyName, validationActions: ["Deny"], ...spec },
  };
}

/** Binds a policy to the namespaces of one tenant. It is part of the tenant's stack. */
export function tenantBinding(policyName: string, { metadata: { name } }: KindObject, spec: object = {}): Manifest {
  const matchResources = { namespaceSelector: { matchLabels: { [TENANT_LABEL]: name } } };
  return policyBinding(policyName, `${policyName}-${name}`, { matchResources, ...spec });
}

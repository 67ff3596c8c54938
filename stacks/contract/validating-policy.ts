import type { Manifest } from "../../providers/kubernetes/client";
import { INSTALLED_LABELS } from "./crd";

const API_VERSION = "admissionregistration.k8s.io/v1";
/** Served since Kubernetes 1.36. */
export const MUTATION_TYPE = { apiVersion: API_VERSION, kind: "MutatingAdmissionPolicy" } as const;

/** Requests for resources. */
export interface ResourceRule {
  apiGroups: string[];
  /** Requests in these alone. Default: in any, also where they are converted. */
  apiVersions?: string[];
  resources: string[];
  /**
   * One of both, as a selector of namespaces skips no cluster-scoped objects. Namespaces are cluster-scoped, and selected by
   * their own labels.
   */
  scope: "Cluster" | "Namespaced";
  /** Default: CREATE and UPDATE. */
  operations?: string[];
}

/** What must be true, in CEL, and what the user is told when it is not: a CEL expression of a string. */
export interface Validation {
  expression: string;
  messageExpression: string;
  /** Default: Forbidden. */
  reason?: "Forbidden" | "Invalid";
}

/** What a policy is about, and what it demands. */
export interface PolicySpec {
  rules: readonly ResourceRule[];
  /** Named CEL expressions, evaluated when they are first used. */
  variables: Readonly<Record<string, string>>;
  validations: readonly Validation[];
  /** More fields of the policy's specification. */
  [field: string]: unknown;
}

/**
 * Whole, with the API server's defaults: it is one value to server-side apply, which else finds a conflict where a second manager
 * applies the same.
 */
function matchConstraints(rules: readonly ResourceRule[]): object {
  return {
    matchPolicy: rules.some(({ apiVersions }) => apiVersions !== undefined) ? "Exact" : "Equivalent",
    namespaceSelector: {},
    objectSelector: {},
    resourceRules: rules.map(({ scope, apiVersions = ["*"], ...rule }) => ({
      operations: ["CREATE", "UPDATE"],
      scope,
      ...rule,
      apiVersions,
    })),
  };
}

function variablesOf(variables: PolicySpec["variables"]): object[] {
  return Object.entries(variables).map(([name, expression]) => ({ name, expression }));
}

/** A policy that the API server evaluates itself, so that it cannot be down. */
export function validatingPolicy(name: string, { rules, variables, validations, ...rest }: PolicySpec): Manifest {
  return {
    apiVersion: API_VERSION,
    kind: "ValidatingAdmissionPolicy",
    metadata: { name },
    spec: {
      // An expression that cannot be evaluated refuses: what it guards against would be stored.
      failurePolicy: "Fail",
      matchConstraints: matchConstraints(rules),
      variables: variablesOf(variables),
      validations: validations.map((validation) => ({ reason: "Forbidden", ...validation })),
      ...rest,
    },
  };
}

/** What puts a policy in force; everywhere, unless `spec` says where. It refuses what the policy does not allow. */
export function policyBinding(policyName: string, name: string, spec: object = {}): Manifest {
  return {
    apiVersion: API_VERSION,
    kind: "ValidatingAdmissionPolicyBinding",
    metadata: { name },
    spec: { policyName, validationActions: ["Deny"], ...spec },
  };
}

/** What changes objects as they are stored, everywhere: installed with the CRDs, and stays with them. @param patch in CEL */
export function installedMutation(
  name: string,
  { rules, variables }: Pick<PolicySpec, "rules" | "variables">,
  patch: string,
): Manifest[] {
  const metadata = { name, labels: INSTALLED_LABELS };
  const spec = {
    failurePolicy: "Fail",
    reinvocationPolicy: "IfNeeded", // what others change afterwards is seen
    matchConstraints: matchConstraints(rules),
    variables: variablesOf(variables),
    mutations: [{ patchType: "JSONPatch", jsonPatch: { expression: patch } }],
  };
  return [
    { ...MUTATION_TYPE, metadata, spec },
    { apiVersion: API_VERSION, kind: `${MUTATION_TYPE.kind}Binding`, metadata, spec: { policyName: name } },
  ];
}

/** A policy in force everywhere that is installed with the CRDs, and stays with them. @param binding more fields of it */
export function installedPolicy(name: string, spec: PolicySpec, binding?: object): Manifest[] {
  return [validatingPolicy(name, spec), policyBinding(name, name, binding)].map((object) => ({
    ...object,
    metadata: { name, labels: INSTALLED_LABELS },
  }));
}

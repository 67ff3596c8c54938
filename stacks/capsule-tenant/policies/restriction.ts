import type { CapsuleTenant } from "../schema";
import { celString, type ResourceRule, type Validation } from "./policy";

/** One thing that a tenant restricts its namespaces in; a file of this folder each. */
export interface Restriction {
  /** Whether a tenant restricts this at all. */
  appliesTo(tenant: CapsuleTenant): boolean;
  /** The requests that it is about. Its validations are evaluated for these alone. */
  rules: readonly ResourceRule[];
  /** Named CEL expressions; no two restrictions use the same name. `params` is the Tenant. */
  variables: Record<string, string>;
  validations: readonly Validation[];
}

/** A list of the specification with values and an expression. */
type ListField = "ingressClasses" | "ingressHostnames" | "storageClasses" | "containerRegistries" | "priorityClasses";

/** The Tenant's annotations that held a list in Capsule before it was a field. */
export interface ListAnnotations {
  allowed: string;
  regex: string;
}

/** An annotation of the Tenant in CEL; empty when there is none. */
export function tenantAnnotation(key: string): string {
  return `params.metadata.?annotations[?${celString(key)}].orValue('')`;
}

/** The values of a text with commas between them, in CEL. */
export function commaSeparated(text: string): string {
  return `(${text} == '' ? [] : ${text}.split(',').map(item, item.trim()))`;
}

/**
 * What is allowed by a list and an expression, in CEL: the variables `<field>Restricted`, `<field>Allowed`,
 * `<field>Regex` and, for people, `<field>Choice`. The field wins over annotations.
 */
export function listVariables(field: ListField, annotations?: ListAnnotations): Record<string, string> {
  const [allowed, regex] = [`variables.${field}Allowed`, `variables.${field}Regex`];
  const hasField = `has(params.spec.${field})`;
  const fromField = [`params.spec.?${field}.?allowed.orValue([])`, `params.spec.?${field}.?allowedRegex.orValue('')`];
  const variables = annotations
    ? {
        [`${field}Restricted`]: `${hasField} || ${tenantAnnotation(annotations.allowed)} != '' || ${tenantAnnotation(annotations.regex)} != ''`,
        [`${field}Allowed`]: `${hasField} ? ${fromField[0]} : ${commaSeparated(tenantAnnotation(annotations.allowed))}`,
        [`${field}Regex`]: `${hasField} ? ${fromField[1]} : ${tenantAnnotation(annotations.regex)}`,
      }
    : {
        [`${field}Restricted`]: hasField,
        [`${field}Allowed`]: fromField[0] as string,
        [`${field}Regex`]: fromField[1] as string,
      };
  return {
    ...variables,
    [`${field}Choice`]:
      `size(${allowed}) == 0 && ${regex} == '' ? 'none' : ${allowed}.join(', ') + ` +
      `(${regex} == '' ? '' : (size(${allowed}) == 0 ? '' : ', and ') + 'what matches ' + ${regex})`,
  };
}

/** In CEL: whether the list or the expression has a value. RE2 takes time linear in its length. */
export function isAllowed(field: ListField, value: string): string {
  const [allowed, regex] = [`variables.${field}Allowed`, `variables.${field}Regex`];
  return `(${value} in ${allowed} || (${regex} != '' && ${value}.matches(${regex})))`;
}

/** The end of a message about a list: in which tenant, and what is allowed there. */
export function allowedIn(field: ListField): string {
  return `' in the tenant ' + params.metadata.name + '; allowed: ' + variables.${field}Choice`;
}

export function hasAnnotation({ metadata }: CapsuleTenant, ...keys: string[]): boolean {
  return keys.some((key) => (metadata.annotations?.[key] ?? "") !== "");
}

import type { ResourceRule, Validation } from "../../../contract/index";
import type { CapsuleTenant, CapsuleTenantSpec } from "../schema";

/** One restriction of a tenant's namespaces. In its CEL, `params` is the Tenant. */
export interface Restriction {
  /** Whether a tenant restricts this at all. */
  appliesTo(tenant: CapsuleTenant): boolean;
  /** The requests that it is about, for one resource. Its validations are evaluated for these alone. */
  rule: ResourceRule;
  /** Named CEL expressions; two restrictions use the same name only for the same expression. */
  variables?: Record<string, string>;
  validations: readonly Validation[];
}

/** What objects use must be on a list of the Tenant. The strings are CEL, except for the first three and annotations. */
interface AllowedList {
  /** Of the specification; it wins over annotations. */
  field: keyof CapsuleTenantSpec;
  /** How the names of its variables begin, where the field has two lists. Default: the field. */
  variables?: string;
  rule: ResourceRule;
  /** In messages, with its article. */
  called: `a ${string}` | `an ${string}`;
  /** Whether an object must use something, unless it has used nothing before. */
  isRequired?: true;
  /** A list of what an object uses, as strings; an empty one is allowed only if the list has it. */
  used(object: string): string;
  /** What of such a string is compared with the list. Default: all of it. */
  compared?(used: string): string;
  /** The list. Default: `allowed` of the field. */
  allowed?: string;
  /** A regular expression for more values. Default: `allowedRegex` of the field. */
  regex?: string;
  /** The Tenant's annotations that Capsule takes instead of the field. */
  annotations?: { allowed: string; regex?: string };
  /** Whether a value is allowed. Default: `isListed`, whether the list has it or the regular expression matches it. */
  isAllowed?(value: string, isListed: string): string;
  /** How a refusal begins. Default: `named`, which names the value. */
  refusal?(value: string, named: string): string;
}

/** What an object uses already may stay when the list becomes shorter. */
export function allowedList(list: AllowedList): Restriction {
  const { field, variables: prefix = field, rule, called, annotations, compared, isAllowed, refusal } = list;
  const variable = (name: string) => `variables.${prefix}${name}`;
  const [allowed, regex, used, before, refused] = ["Allowed", "Regex", "Used", "Before", "Refused"].map(variable);
  const isGiven = `has(params.spec.${field})`;
  const orAnnotation = (value: string, key: string | undefined, parse = (text: string) => text) =>
    key === undefined ? value : `${isGiven} ? ${value} : ${parse(tenantAnnotation(key))}`;
  const keys = Object.values(annotations ?? {});
  // RE2 takes time linear in the length of the value.
  const isListed = `(one in ${allowed} || (one != '' && ${regex} != '' && one.matches(${regex})))`;
  const variables = {
    Restricted: [isGiven, ...keys.map((key) => `${tenantAnnotation(key)} != ''`)].join(" || "),
    Allowed: orAnnotation(
      list.allowed ?? `params.spec.?${field}.?allowed.orValue([])`,
      annotations?.allowed,
      commaSeparated,
    ),
    Regex: orAnnotation(list.regex ?? `params.spec.?${field}.?allowedRegex.orValue('')`, annotations?.regex),
    Choice:
      `size(${allowed}) == 0 && ${regex} == '' ? 'none' : ${allowed}.join(', ') + ` +
      `(${regex} == '' ? '' : (size(${allowed}) == 0 ? '' : ', and ') + 'what matches ' + ${regex})`,
    Used: list.used("object"),
    Before: `oldObject == null ? [] : ${list.used("oldObject")}`,
    Refused:
      `${used}.filter(one, !(one in ${before}))${compared ? `.map(one, ${compared("one")})` : ""}` +
      `.filter(one, !${isAllowed?.("one", isListed) ?? isListed})`,
  };
  const validation = (isValid: string, message: string): Validation => ({
    expression: `!${variable("Restricted")} || ${isValid}`,
    messageExpression: `${message} + ' in the tenant ' + params.metadata.name + '; allowed: ' + ${variable("Choice")}`,
  });
  const usesOne = `size(${used}) > 0 || (oldObject != null && size(${before}) == 0)`;
  const named = `(${refused}[0] == '' ? '${called} must be named' : 'the ${called.replace(/^an? /, "")} ' + ${refused}[0] + ' is not allowed')`;
  return {
    appliesTo: ({ metadata, spec }) => spec[field] !== undefined || keys.some((key) => metadata.annotations?.[key]),
    rule,
    variables: Object.fromEntries(Object.entries(variables).map(([name, value]) => [`${prefix}${name}`, value])),
    validations: [
      ...(list.isRequired ? [validation(usesOne, `'${called} must be named'`)] : []),
      validation(`size(${refused}) == 0`, refusal?.(`${refused}[0]`, named) ?? named),
    ],
  };
}

/** An annotation of the Tenant in CEL; empty when there is none. */
export function tenantAnnotation(key: string): string {
  return `params.metadata.?annotations[?${JSON.stringify(key)}].orValue('')`;
}

/** The values of a text with commas between them, in CEL. */
function commaSeparated(text: string): string {
  return `(${text} == '' ? [] : ${text}.split(',').map(item, item.trim()))`;
}

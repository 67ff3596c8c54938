import { LRUCache } from "lru-cache";
import { RE2JS } from "re2js";
import { TerminalError } from "../../contract/index";
import { TENANT_LABEL } from "./labels";
import type { CapsuleTenant } from "./schema";

/*
 * Which labels and annotations of a namespace its tenant's owner may set. Expressions are RE2's: the API server
 * evaluates them when a namespace is changed, the webhook when one is created.
 */

/** Expressions for keys of labels and annotations. */
export const KEY_PATTERNS = {
  /** Keys that belong to Kubernetes, Capsule and Kindstack: Pod Security, schedulers, ownership. */
  reserved: "^([-a-z0-9.]+\\.)?(kubernetes\\.io|k8s\\.io|kindstack\\.dev|capsule\\.clastix\\.io)/",
  /** Of these, what says nothing to the cluster, or what the API server itself sets. */
  unreserved: "^(app|kubectl)\\.kubernetes\\.io/|^kubernetes\\.io/metadata\\.name$",
  /** Of these, what no tenant can allow: it says whose a namespace is. */
  ownership: "^([-a-z0-9.]+\\.)?(kindstack\\.dev|capsule\\.clastix\\.io)/",
};

export const METADATA_MAPS = ["labels", "annotations"] as const;
export type MetadataMap = (typeof METADATA_MAPS)[number];

/** On a namespace, for the API server to read: what its tenant forbids and allows besides, as expressions. */
export const KEY_RULE_ANNOTATIONS = {
  labels: { forbidden: "kindstack.dev/forbidden-labels", allowed: "kindstack.dev/allowed-labels" },
  annotations: { forbidden: "kindstack.dev/forbidden-annotations", allowed: "kindstack.dev/allowed-annotations" },
} as const;

/**
 * An expression for what a tenant forbids, and one for what it allows though it is reserved or forbidden; `""` for
 * nothing. What it forbids may also be in Capsule's annotations of the Tenant; the field wins.
 */
export function keyRules({ metadata, spec }: CapsuleTenant, map: MetadataMap) {
  const suffix = ({ labels: "Labels", annotations: "Annotations" } as const)[map];
  const forbidden = spec.namespacesMetadata?.[`forbidden${suffix}`];
  const allowed = spec.namespacesMetadata?.[`allowed${suffix}`];
  const annotation = forbiddenAnnotation(map);
  const { [annotation]: keys, [`${annotation}-regexp`]: regex } = metadata.annotations ?? {};
  return {
    forbidden: forbidden
      ? expressionOf(forbidden.denied, forbidden.deniedRegex)
      : expressionOf(keys?.split(","), regex),
    allowed: expressionOf(allowed?.allowed, allowed?.allowedRegex),
  };
}

function forbiddenAnnotation(map: MetadataMap): string {
  return `capsule.clastix.io/forbidden-namespace-${map}`;
}

/** Each key of a new namespace is compared with all of them. */
const compiled = new LRUCache<string, RE2JS>({ max: 200, memoMethod: (regex) => RE2JS.compile(regex) });

/** Of the keys that a new namespace is created with, those that its owner may not set. */
export function refusedKeys(tenant: CapsuleTenant, map: MetadataMap, keys: readonly string[]): string[] {
  const { forbidden, allowed } = keyRules(tenant, map);
  const matches = (regex: string, key: string) => {
    try {
      return regex !== "" && compiled.memo(regex).matcher(key).find();
    } catch (error) {
      // The API server compiles what the specification has, but no annotation.
      const annotation = `the annotation ${forbiddenAnnotation(map)}-regexp of the Tenant ${tenant.metadata.name}`;
      throw new TerminalError("Invalid", `${annotation} is not in RE2's syntax: ${String(error)}`);
    }
  };
  return keys.filter((key) => {
    if (key === TENANT_LABEL && map === "labels") return false; // the owner of several tenants chooses one with it
    if (matches(KEY_PATTERNS.ownership, key)) return true;
    const isReserved = matches(KEY_PATTERNS.reserved, key) && !matches(KEY_PATTERNS.unreserved, key);
    return (isReserved || matches(forbidden, key)) && !matches(allowed, key);
  });
}

export function keyRuleAnnotations(tenant: CapsuleTenant): Record<string, string> {
  return Object.fromEntries(
    METADATA_MAPS.flatMap((map) =>
      (["forbidden", "allowed"] as const)
        .map((rule) => [KEY_RULE_ANNOTATIONS[map][rule], keyRules(tenant, map)[rule]])
        .filter(([, expression]) => expression !== ""),
    ),
  );
}

/** One expression for exact values and for what another one matches. */
function expressionOf(exact: readonly string[] = [], regex = ""): string {
  const values = exact
    .map((value) => value.trim())
    .filter((value) => value !== "")
    .map((text) => RE2JS.quote(text));
  return [...(values.length > 0 ? [`^(${values.join("|")})$`] : []), ...(regex === "" ? [] : [`(${regex})`])].join("|");
}

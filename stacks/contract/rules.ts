import type { Manifest } from "../../providers/kubernetes/client";
import type { AnyKind } from "./kind";
import type { StructuralNode } from "./schema-node";
import { structuralSchema } from "./structural";

/** Whether a value satisfies a rule; `undefined` for a rule that only the API server can judge. */
type Judge = (rule: string, self: unknown) => boolean | undefined;

/**
 * What the API server would refuse in an object from a file by the kind's rules in CEL and by lists of unique items. Rules
 * about a change (`oldSelf`), or with functions that only Kubernetes has, are left to the API server.
 *
 * @param manifest an object that the kind's schema takes, with defaults filled in
 * @returns a sentence for each violation, naming the field and, if it is short enough to be shown, the value
 */
export async function violatedRules(kind: AnyKind, manifest: Manifest): Promise<string[]> {
  const { name, generateName } = manifest.metadata;
  // Of the metadata, rules see no more than this.
  const self = { ...manifest, metadata: { ...(name && { name }), ...(generateName && { generateName }) } };
  const schema: StructuralNode = {
    properties: { spec: structuralSchema(kind.spec, "spec") },
    "x-kubernetes-validations": kind.capabilities.rules ?? [],
  };
  return violationsIn(schema, self, []);
}

async function violationsIn(schema: StructuralNode, value: unknown, path: readonly string[]): Promise<string[]> {
  const violated: string[] = [];
  for (const { rule, message = rule } of schema["x-kubernetes-validations"] ?? []) {
    opened ??= openJudge();
    const judge = await opened;
    if (judge(rule, celValue(schema, value)) === false) violated.push(describe(path, value, message));
  }
  const parts = partsOf(schema, value).map(([name, part, inner]) => violationsIn(inner, part, [...path, name]));
  return [...violated, ...repeatedItems(schema, value, path), ...(await Promise.all(parts)).flat()];
}

/** The values inside a value, each with its name and its schema; what the schema does not know has no rules. */
function partsOf(schema: StructuralNode, value: unknown): [name: string, part: unknown, inner: StructuralNode][] {
  if (typeof value !== "object" || value === null) return [];
  const { properties = {}, items, additionalProperties } = schema;
  const others = Array.isArray(value) ? items : additionalProperties;
  return Object.entries(value).map(([name, part]) => [
    name,
    part,
    properties[name] ?? (typeof others === "object" ? others : {}),
  ]);
}

/** In CEL, whole numbers and others are of different types, which JSON does not tell apart. */
function celValue(schema: StructuralNode, value: unknown): unknown {
  if (typeof value === "number" && schema.type === "integer") return BigInt(value);
  if (typeof value !== "object" || value === null) return value;
  const parts = partsOf(schema, value).map(([name, part, inner]) => [name, celValue(inner, part)] as const);
  return Array.isArray(value) ? parts.map(([, part]) => part) : Object.fromEntries(parts);
}

function repeatedItems(schema: StructuralNode, value: unknown, path: readonly string[]): string[] {
  const { "x-kubernetes-list-type": type, "x-kubernetes-list-map-keys": keys = [] } = schema;
  if (!Array.isArray(value) || (type !== "set" && type !== "map")) return [];
  const identities = value.map((item) =>
    JSON.stringify(type === "set" ? item : keys.map((key) => (item as Record<string, unknown>)[key])),
  );
  return value.flatMap((item, index) =>
    identities.indexOf(identities[index] as string) < index
      ? [describe([...path, String(index)], item, "is a duplicate value")]
      : [],
  );
}

/** `spec.namespaces.0: "kube-system" cannot belong to a tenant` */
function describe(path: readonly string[], value: unknown, message: string): string {
  const shown = typeof value === "object" ? "" : `${JSON.stringify(value)?.slice(0, 200)} `;
  return path.length === 0 ? message : `${path.join(".")}: ${shown}${message}`;
}

/** Loaded for the first rule: an operator, whose objects the API server has checked, never needs it. */
let opened: Promise<Judge> | undefined;

async function openJudge(): Promise<Judge> {
  const [{ celEnv, isCelError, parse, plan }, { strings }] = await Promise.all([
    import("@bufbuild/cel"),
    import("@bufbuild/cel/ext"),
  ]);
  const environment = celEnv({ funcs: strings });
  return (rule, self) => {
    if (/\boldSelf\b/.test(rule)) return undefined;
    const result = plan(environment, parse(rule))({ self } as Parameters<ReturnType<typeof plan>>[0]);
    if (isCelError(result)) return result.message.startsWith("unbound function") ? undefined : false;
    return result === true;
  };
}

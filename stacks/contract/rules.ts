import { LRUCache } from "lru-cache";
import type { Manifest } from "../../providers/kubernetes/client";
import type { AnyKind } from "./kind";
import { INT_OR_STRING, innerSchema, type StructuralNode } from "./schema-node";
import { structuralSchema } from "./structural";

/** Whether a value satisfies a rule; `undefined` for a rule that only the API server can judge. */
type Judge = (rule: string, schema: StructuralNode, value: unknown) => boolean | undefined;

/**
 * What the API server would refuse in an object from a file by the kind's rules in CEL and by lists of unique items. Rules
 * about a change (`oldSelf`), or with functions that only Kubernetes has, are left to the API server.
 *
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
  if (value === null) return []; // as in the API server, a rule about null is one of the object around it
  const violated: string[] = [];
  for (const { rule, message = rule } of schema["x-kubernetes-validations"] ?? []) {
    opened ??= openJudge();
    const judge = await opened;
    if (judge(rule, schema, value) === false) violated.push(describe(path, value, message));
  }
  const parts = partsOf(schema, value).map(([name, part, inner]) => violationsIn(inner, part, [...path, name]));
  return [...violated, ...repeatedItems(schema, value, path), ...(await Promise.all(parts)).flat()];
}

/** The values inside a value, each with its name and its schema; what the schema does not know has no rules. */
function partsOf(schema: StructuralNode, value: unknown): [name: string, part: unknown, inner: StructuralNode][] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).map(([name, part]) => [name, part, innerSchema(schema, value, name) ?? {}]);
}

/**
 * A value as rules see it: whole numbers and others are of different types, which JSON does not tell apart, texts of some
 * formats are no strings, and the names of fields are escaped.
 *
 * @param evaluate evaluates an expression about a text; `undefined` when it fails
 */
function celValue(schema: StructuralNode, value: unknown, evaluate: (rule: string, self: string) => unknown): unknown {
  if (typeof value === "number" && (schema.type === "integer" || schema[INT_OR_STRING])) return BigInt(value);
  if (typeof value === "string") {
    if (schema.format === "byte") return Buffer.from(value, "base64");
    const typed = TYPED_TEXTS[schema.format as string];
    return typed === undefined ? value : (evaluate(typed, value) ?? value);
  }
  if (typeof value !== "object" || value === null) return value;
  const parts = partsOf(schema, value).map(([name, part, inner]) => {
    const isField = schema.properties?.[name] !== undefined;
    return [isField ? escaped(name) : name, celValue(inner, part, evaluate)] as const;
  });
  return Array.isArray(value) ? parts.map(([, part]) => part) : Object.fromEntries(parts);
}

/** What rules have in place of a text, by its format. */
const TYPED_TEXTS: Readonly<Record<string, string>> = {
  "date-time": "timestamp(self)",
  date: "timestamp(self + 'T00:00:00Z')",
  duration: "duration(self)",
};

const KEYWORDS =
  /^(true|false|null|in|as|break|const|continue|else|for|function|if|import|let|loop|package|namespace|return|var|void|while)$/;
const ESCAPES: Readonly<Record<string, string>> = { __: "underscores", ".": "dot", "-": "dash", "/": "slash" };

/** The name of a field as Kubernetes has it in rules. */
function escaped(name: string): string {
  return KEYWORDS.test(name) ? `__${name}__` : name.replace(/__|[./-]/g, (found) => `__${ESCAPES[found]}__`);
}

function repeatedItems(schema: StructuralNode, value: unknown, path: readonly string[]): string[] {
  const { "x-kubernetes-list-type": type, "x-kubernetes-list-map-keys": keys = [] } = schema;
  if (!Array.isArray(value) || (type !== "set" && type !== "map")) return [];
  const known = new Set<string>();
  return value.flatMap((item, index) => {
    const identity = JSON.stringify(type === "set" ? item : keys.map((key) => (item as Record<string, unknown>)[key]));
    if (known.has(identity)) return [describe([...path, String(index)], item, "is a duplicate value")];
    known.add(identity);
    return [];
  });
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
  type Planned = ReturnType<typeof plan>;
  // Each item of a list is judged by the same rules.
  const planned = new LRUCache<string, Planned>({ max: 500, memoMethod: (text) => plan(environment, parse(text)) });
  const evaluate = (expression: string, self: unknown) => planned.memo(expression)({ self } as Parameters<Planned>[0]);
  const typed = (expression: string, text: string) => {
    const result = evaluate(expression, text);
    return isCelError(result) ? undefined : result;
  };
  return (rule, schema, value) => {
    if (/\boldSelf\b/.test(rule)) return undefined;
    try {
      const result = evaluate(rule, celValue(schema, value, typed));
      return isCelError(result) && UNKNOWN.test(result.message) ? undefined : result === true;
    } catch {
      return undefined; // Kubernetes' CEL has more syntax, such as `self.?name`
    }
  };
}

/** Of what Kubernetes' CEL has besides; it accepts no CRD with a rule whose types do not match. */
const UNKNOWN = /^(unbound function|unresolved attribute|found no matching overload)/;

import { type AnyKind, kindApiVersion, kindName } from "../../stacks/contract/kind";
import { kindOf } from "../../stacks/contract/kind-name";
import { parseManifests, SEPARATOR } from "../../stacks/contract/parse-manifests";
import type { StructuralNode } from "../../stacks/contract/schema-node";
import { structuralSchema } from "../../stacks/contract/structural";

const STANDARD_CONDITIONS = [
  ["Synced", "whether the last update succeeded"],
  ["Ready", "synced, and what the object made works"],
  ["Reconciling", "only while it is true: an update is under way, or what was made does not work yet"],
  ["Stalled", "only while it is true: nothing happens until someone changes something"],
  ["DriftUnknown", "only while it is true: resources cannot be compared"],
  ["FieldConflict", "another controller undoes corrections"],
  ["Paused", "an annotation stops the work on the object"],
];

/**
 * The page of a kind's users, in Markdown: names, an example, fields with types, defaults and limits, and conditions.
 */
export function kindPage(kind: AnyKind, sample: string | undefined): string {
  const { group, plural, shortNames = [], scope, description, capabilities } = kind;
  const versions = [kind.version, ...(capabilities.versions ?? []).map(({ version }) => version)];
  const facts = [
    ["apiVersion", `\`${kindApiVersion(kind)}\`${versions.length > 1 ? ` (served: ${versions.join(", ")})` : ""}`],
    ["kubectl", [`\`kubectl get ${plural}.${group}\``, ...shortNames.map((name) => `\`${name}\``)].join(", ")],
    ["scope", scope === "Cluster" ? "the cluster" : "a namespace"],
    ["makes", kind.owns.map((type) => `\`${type.kind}\``).join(", ") || "no Kubernetes objects"],
  ];
  const spec = structuralSchema(kind.spec, "spec");
  return [
    `# ${kind.kind}`,
    description,
    table(["", ""], facts),
    ...(sample === undefined ? [] : ["## Example", `\`\`\`yaml\n${sample.trim()}\n\`\`\``]),
    "## Fields of the spec",
    ...fieldsOf(spec),
    ...rulesOf([...(spec["x-kubernetes-validations"] ?? []), ...(capabilities.rules ?? [])]),
    "## Fields of the status",
    ...fieldsOf(structuralSchema(kind.status, "status")),
    "## Conditions",
    table(["condition", "meaning"], [...STANDARD_CONDITIONS, ...Object.entries(capabilities.conditionTypes ?? {})]),
  ].join("\n\n");
}

/** What of a sample is an example of the kind: of a file with samples of several kinds, its own documents. */
export function exampleOf(kind: AnyKind, kinds: readonly AnyKind[], sample: string): string | undefined {
  const documents = sample.split(SEPARATOR).map((text) => ({ text, kinds: kindsIn(kinds, text) }));
  if (documents.every((document) => document.kinds.every((found) => found === kind))) return sample;
  const own = documents.filter((document) => document.kinds.includes(kind)).map(({ text }) => text);
  return own.length === 0 ? undefined : own.join("---\n");
}

function kindsIn(kinds: readonly AnyKind[], sample: string): AnyKind[] {
  const { objects } = parseManifests(sample, "sample", { strict: false });
  return objects.flatMap(({ manifest }) => kindOf(kinds, manifest) ?? []);
}

function fieldsOf(schema: StructuralNode): string[] {
  const rows = [...fieldRows(schema, "")];
  return [rows.length === 0 ? "None." : table(["field", "type", "default", "meaning"], rows)];
}

function* fieldRows(schema: StructuralNode, path: string): Generator<string[]> {
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    const here = `${path}${/^[\w-]+$/.test(name) ? name : JSON.stringify(name)}`;
    const isRequired = schema.required?.includes(name) ?? false;
    const meaning = [field.description?.trim(), ...limitsOf(field)].filter(Boolean).join(" ");
    const given = field.default === undefined ? (isRequired ? "required" : "") : `\`${JSON.stringify(field.default)}\``;
    yield [`\`${here}\``, typeOf(field), given, meaning];
    const [inner, suffix] = contentsOf(field);
    if (inner !== undefined) yield* fieldRows(inner, `${here}${suffix}.`);
  }
}

/** What is below a field: of an object itself, of each item of a list, of each value of a map. */
function contentsOf({ items, additionalProperties, ...schema }: StructuralNode): [StructuralNode | undefined, string] {
  if (items !== undefined) return [items, "[]"];
  if (typeof additionalProperties === "object") return [additionalProperties, ".*"];
  return [schema, ""];
}

function typeOf(field: StructuralNode): string {
  const { type, items, additionalProperties } = field;
  if (field["x-kubernetes-int-or-string"]) return "integer or string";
  if (type === "array") return `list of ${items === undefined ? "anything" : typeOf(items)}`;
  if (typeof additionalProperties === "object") return `map of ${typeOf(additionalProperties)}`;
  return type ?? "anything";
}

const LIMITS: Readonly<Record<string, string>> = {
  minimum: "At least",
  maximum: "At most",
  minLength: "Shortest length",
  maxLength: "Longest length",
  pattern: "Matches",
  format: "Format",
  minItems: "Fewest items",
  maxItems: "Most items",
};

function limitsOf(field: StructuralNode): string[] {
  const limits = Object.entries(LIMITS).flatMap(([keyword, words]) => {
    const limit = field[keyword];
    const isWidest = typeof limit === "number" && !Number.isSafeInteger(limit * 2) && Math.abs(limit) > 2 ** 52;
    return limit === undefined || isWidest ? [] : [`${words}: \`${limit}\`.`];
  });
  const values = field.enum?.map((value) => `\`${JSON.stringify(value)}\``).join(", ");
  const rules = (field["x-kubernetes-validations"] ?? []).map(({ message, rule }) => sentence(message ?? rule));
  return [...(values ? [`One of ${values}.`] : []), ...limits, ...rules];
}

function rulesOf(rules: readonly { rule: string; message?: string }[]): string[] {
  if (rules.length === 0) return [];
  return ["Rules:", rules.map(({ message, rule }) => `- ${sentence(message ?? rule)}`).join("\n")];
}

function sentence(text: string): string {
  return text.endsWith(".") ? text : `${text}.`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|").replaceAll("\n", " ")).join(" | ")} |`;
  return [line(head), `|${head.map(() => "---|").join("")}`, ...rows.map(line)].join("\n");
}

/** The file of a kind's page: `notices.example.com.md`. */
export function pageName(kind: AnyKind): string {
  return `${kindName(kind)}.md`;
}

import { isObjectOutputs } from "../../providers/kubernetes/object";
import { objectId } from "../../stacks/contract/object";
import { belongsTo, isObjectComponent } from "../../stacks/contract/shared-stack";
import { nameOf } from "../automation/event-log";
import type { RecordedResource, StackState } from "../automation/stack-reader";
import { visible } from "../text/plain-text";
import { type Html, html } from "./html";
import type { Tone } from "./parts";
import type { ConsoleSource } from "./source";

/** One resource of a stack, and what is known of it now. */
interface GraphNode {
  urn: string;
  type: string;
  name: string;
  id: string;
  /** URNs of what it depends on, and of its parent. */
  needs: string[];
  state: { tone: Tone; text: string };
  outputs: [name: string, value: string][];
}

/** What Pulumi puts in place of a secret. */
const SECRET_MARK = "4dabf18193072939515e22adb298388d";
const SECRET_NAME = /passw|secret|token|credential|private|apikey|api_key/i;
const LONGEST_OUTPUT = 60;
/** What the provider of Kubernetes objects keeps for itself. */
const BOOKKEEPING = ["fields", "resourceVersion", "uid", "drifted"];
const DYNAMIC = "pulumi-nodejs:dynamic";

const collator = new Intl.Collator("en", { numeric: true });

/** The resources of an object's stack by name; of one that is shared, those of the object. */
export function graphOf(state: StackState, key: string, view: ConsoleSource["view"]): GraphNode[] {
  const all = state.deployment.resources ?? [];
  const isOwn = isOwnResource(state, key);
  const own = all.filter(
    ({ urn, type }) => (type.startsWith(DYNAMIC) || isObjectComponent(type)) && isOwn(nameOf(urn)),
  );
  const known = new Set(own.map(({ urn }) => urn));
  const nodes = own.map((resource) => ({
    urn: resource.urn,
    type: resource.type.split(":").at(-1) ?? resource.type,
    name: nameOf(resource.urn),
    id: resource.id ?? "",
    needs: [...new Set([...(resource.dependencies ?? []), resource.parent ?? ""])].filter((urn) => known.has(urn)),
    state: stateOf(resource, view),
    outputs: shownOutputs(resource),
  }));
  return nodes.sort((a, b) => collator.compare(a.name, b.name));
}

/** Tells an object's resources by their names: all of its own stack, and its part of one that is shared. */
export function isOwnResource({ deployment }: StackState, key: string): (name: string) => boolean {
  const isShared = (deployment.resources ?? []).some(({ type }) => isObjectComponent(type));
  return (name) => !isShared || belongsTo(key, name);
}

function stateOf({ outputs }: RecordedResource, view: ConsoleSource["view"]): GraphNode["state"] {
  const seen = outputs && isObjectOutputs(outputs) ? view(objectId(outputs.manifest)) : undefined;
  if (seen === undefined) return { tone: "good", text: "in the state" };
  if (seen.object === undefined) return { tone: "bad", text: "missing" };
  if (seen.object.metadata.deletionTimestamp !== undefined) return { tone: "busy", text: "terminating" };
  return { tone: "good", text: "in the cluster" };
}

/** Short values alone, and none that is a secret or has the name of one. */
function shownOutputs({ outputs = {} }: RecordedResource): GraphNode["outputs"] {
  return Object.entries(outputs).flatMap(([name, value]): GraphNode["outputs"] => {
    if (name.startsWith("__") || BOOKKEEPING.includes(name)) return [];
    if (isSecret(value) || SECRET_NAME.test(name)) return [[name, "[secret]"]];
    if (!["string", "number", "boolean"].includes(typeof value)) return [];
    const text = visible(String(value));
    return [[name, text.length > LONGEST_OUTPUT ? `${text.slice(0, LONGEST_OUTPUT - 1)}…` : text]];
  });
}

function isSecret(value: unknown): boolean {
  return typeof value === "object" && value !== null && SECRET_MARK in value;
}

const [WIDTH, HEIGHT, GAP_X, GAP_Y] = [270, 56, 70, 16];
const CHARACTERS = 32;
/** More would be no picture any more; the table has all. */
const MOST_NODES = 60;

/** A drawing of the resources: what others depend on is on the left. */
export function drawing(nodes: readonly GraphNode[]): Html {
  if (nodes.length === 0 || nodes.length > MOST_NODES) return html``;
  const columns = columnsOf(nodes);
  const places = new Map(
    columns.flatMap((column, x) =>
      column.map((node, y) => [node.urn, { x: x * (WIDTH + GAP_X) + 1, y: y * (HEIGHT + GAP_Y) + 1 }] as const),
    ),
  );
  const width = columns.length * (WIDTH + GAP_X) - GAP_X + 2;
  const height = Math.max(...columns.map(({ length }) => length)) * (HEIGHT + GAP_Y) - GAP_Y + 2;
  return html`<div class="scroll" role="region" aria-label="Drawing of the resources" tabindex="0">
<svg class="graph" role="img" aria-label="${nodes.length} resources and what they depend on; the table below has the same" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">
${nodes.flatMap(({ urn, needs }) => needs.map((need) => edge(places.get(need), places.get(urn))))}
${nodes.map((node) => box(node, places.get(node.urn)))}
</svg></div>`;
}

interface Place {
  x: number;
  y: number;
}

function edge(from: Place | undefined, to: Place | undefined): Html {
  if (from === undefined || to === undefined) return html``;
  const [x1, y1, x2, y2] = [from.x + WIDTH, from.y + HEIGHT / 2, to.x, to.y + HEIGHT / 2];
  const middle = (x1 + x2) / 2;
  return html`<path class="edge" d="M${x1} ${y1} C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}"/>\n`;
}

function box({ type, name, state }: GraphNode, place: Place | undefined): Html {
  if (place === undefined) return html``;
  const short = name.replace(`${type.toLowerCase()}/`, "");
  const shown = short.length > CHARACTERS ? `${short.slice(0, CHARACTERS - 1)}…` : short;
  return html`<g class="node ${state.tone}" transform="translate(${place.x} ${place.y})"><title>${type} ${name}: ${state.text}</title>
<rect width="${WIDTH}" height="${HEIGHT}" rx="8"/><rect class="mark" width="4" height="${HEIGHT - 16}" x="8" y="8" rx="2"/>
<text class="type" x="22" y="22">${type}</text><text x="22" y="42">${visible(shown)}</text></g>\n`;
}

/** Each node to the right of all that it needs. */
function columnsOf(nodes: readonly GraphNode[]): GraphNode[][] {
  const byUrn = new Map(nodes.map((node) => [node.urn, node]));
  const depths = new Map<string, number>();
  const depthOf = (node: GraphNode, path: ReadonlySet<string> = new Set()): number => {
    const known = depths.get(node.urn);
    if (known !== undefined || path.has(node.urn)) return known ?? 0;
    const deeper = new Set([...path, node.urn]);
    const needed = node.needs.flatMap((urn) => byUrn.get(urn) ?? []);
    const depth = Math.max(-1, ...needed.map((need) => depthOf(need, deeper))) + 1;
    depths.set(node.urn, depth);
    return depth;
  };
  const columns: GraphNode[][] = [];
  for (const node of nodes) {
    const depth = depthOf(node);
    while (columns.length <= depth) columns.push([]);
    columns[depth]?.push(node);
  }
  return columns;
}

import { isObjectOutputs } from "../../providers/kubernetes/object";
import { MASKED, maskSecrets } from "../../providers/literal";
import { shortened } from "../../providers/shortened";
import { objectId } from "../../stacks/contract/object";
import type { RecordedResource, StackState } from "../automation/stack-state";
import { isScaffolding, nameOf, typeWord } from "../automation/urn";
import type { Manager } from "../operator/manager";
import { visible } from "../text/plain-text";
import { type Html, html } from "./html";
import type { Tone } from "./parts";

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

const SECRET_NAME = /passw|secret|token|credential|private|apikey|api_key/i;
const LONGEST_OUTPUT = 60;
/** What the provider of Kubernetes objects keeps for itself. */
const BOOKKEEPING = ["fields", "resourceVersion", "uid", "drifted"];
const DYNAMIC = "pulumi-nodejs:dynamic";

const collator = new Intl.Collator("en", { numeric: true });

export function graphOf(state: StackState, view: Manager["view"]): GraphNode[] {
  const own = (state.deployment.resources ?? []).filter(
    ({ urn, type }) => type.startsWith(DYNAMIC) && !isScaffolding(urn),
  );
  const known = new Set(own.map(({ urn }) => urn));
  const nodes = own.map((resource) => ({
    urn: resource.urn,
    type: typeWord(resource.type),
    name: nameOf(resource.urn),
    id: resource.id ?? "",
    needs: [...new Set([...(resource.dependencies ?? []), resource.parent ?? ""])].filter((urn) => known.has(urn)),
    state: stateOf(resource, view),
    outputs: shownOutputs(resource),
  }));
  return nodes.sort((a, b) => collator.compare(a.name, b.name));
}

function stateOf({ outputs }: RecordedResource, view: Manager["view"]): GraphNode["state"] {
  const seen = outputs && isObjectOutputs(outputs) ? view(objectId(outputs.manifest)) : undefined;
  if (seen === undefined) return { tone: "good", text: "in the state" };
  if (seen.object === undefined) return { tone: "bad", text: "missing" };
  if (seen.object.metadata.deletionTimestamp !== undefined) return { tone: "busy", text: "terminating" };
  return { tone: "good", text: "in the cluster" };
}

/** Only short values; no secrets, and nothing that is named like one. */
function shownOutputs({ outputs = {} }: RecordedResource): GraphNode["outputs"] {
  return Object.entries(outputs).flatMap(([name, value]): GraphNode["outputs"] => {
    if (name.startsWith("__") || BOOKKEEPING.includes(name)) return [];
    const shown = SECRET_NAME.test(name) ? MASKED : maskSecrets(value);
    return typeof shown === "object" ? [] : [[name, shortened(visible(String(shown)), LONGEST_OUTPUT)]];
  });
}

const [WIDTH, HEIGHT, GAP_X, GAP_Y] = [270, 56, 70, 16];
const CHARACTERS = 32;
/** A drawing of more nodes is unreadable; the table shows all. */
const MOST_NODES = 60;

/** A drawing of the resources: what others depend on is on the left. */
export function drawing(nodes: readonly GraphNode[]): Html {
  if (nodes.length === 0 || nodes.length > MOST_NODES) return html``;
  const placed = placedNodes(nodes);
  const byUrn = new Map(placed.map((node) => [node.urn, node]));
  const width = Math.max(...placed.map(({ x }) => x)) + WIDTH + 1;
  const height = Math.max(...placed.map(({ y }) => y)) + HEIGHT + 1;
  return html`<div class="scroll" role="region" aria-label="Drawing of the resources" tabindex="0">
<svg class="graph" role="img" aria-label="${nodes.length} resources and what they depend on; the table below has the same" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">
${placed.flatMap((node) => node.needs.flatMap((urn) => byUrn.get(urn) ?? []).map((needed) => edge(needed, node)))}
${placed.map(box)}
</svg></div>`;
}

interface PlacedNode extends GraphNode {
  x: number;
  y: number;
}

/** Each node to the right of all that it needs. */
function placedNodes(nodes: readonly GraphNode[]): PlacedNode[] {
  const needs = new Map(nodes.map((node) => [node.urn, node.needs]));
  const columns = new Map<string, number>();
  const columnOf = (urn: string): number => {
    const known = columns.get(urn);
    if (known !== undefined) return known;
    columns.set(urn, 0); // ends a cycle
    const column = Math.max(-1, ...(needs.get(urn) ?? []).map(columnOf)) + 1;
    columns.set(urn, column);
    return column;
  };
  const rows: number[] = [];
  return nodes.map((node) => {
    const column = columnOf(node.urn);
    const row = rows[column] ?? 0;
    rows[column] = row + 1;
    return { ...node, x: column * (WIDTH + GAP_X) + 1, y: row * (HEIGHT + GAP_Y) + 1 };
  });
}

function edge(from: PlacedNode, to: PlacedNode): Html {
  const [x1, y1, x2, y2] = [from.x + WIDTH, from.y + HEIGHT / 2, to.x, to.y + HEIGHT / 2];
  const middle = (x1 + x2) / 2;
  return html`<path class="edge" d="M${x1} ${y1} C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}"/>\n`;
}

function box({ type, name, state, x, y }: PlacedNode): Html {
  const short = shortened(name.replace(`${type.toLowerCase()}/`, ""), CHARACTERS);
  return html`<g class="node ${state.tone}" transform="translate(${x} ${y})"><title>${type} ${name}: ${state.text}</title>
<rect width="${WIDTH}" height="${HEIGHT}" rx="8"/><rect class="mark" width="4" height="${HEIGHT - 16}" x="8" y="8" rx="2"/>
<text class="type" x="22" y="22">${type}</text><text x="22" y="42">${visible(short)}</text></g>\n`;
}

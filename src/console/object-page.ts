import { errorMessageOf } from "../../providers/errors";
import type { LiveObject } from "../../providers/kubernetes/client";
import { type AnyKind, kindName, statusOf } from "../../stacks/contract/kind";
import { objectKey } from "../../stacks/contract/object";
import type { Plan } from "../../stacks/contract/plan";
import type { HistoryEntry } from "../automation/engine";
import { describeUpdate, durationOf } from "../automation/planned-changes";
import { approvalWords } from "../plan/contents";
import { objectPlan } from "../preview/report";
import { describeFields } from "../preview/wording";
import { visible, visibleLines } from "../text/plain-text";
import { type Html, html } from "./html";
import { badge, objectBadge, type Tone, table, time } from "./parts";
import { CONSOLE_PATH, kindHref } from "./paths";
import type { ConsoleSource, StackContents } from "./source";
import { drawing, graphOf } from "./stack-graph";

const SHOWN_UPDATES = 20;
const SHOWN_CHANGES = 5;
const RESULT_TONES: Readonly<Record<string, Tone>> = { succeeded: "good", failed: "bad" };

/** One object: its conditions, the resources of its stack, its updates and Events. */
export async function objectPage(source: ConsoleSource, kind: AnyKind, object: LiveObject): Promise<Html> {
  const key = objectKey(object.metadata);
  const name = kindName(kind);
  const { mode } = statusOf(object);
  const stack = await source.stack(kind, object).catch((error: unknown) => ({ error: errorMessageOf(error) }));
  return html`<nav class="crumbs" aria-label="Breadcrumb"><a href="${CONSOLE_PATH}">Overview</a> / <a href="${kindHref(name)}">${kind.kind}</a></nav>
<h1>${key} ${objectBadge(object)}</h1>
<p class="where">${name}, generation ${object.metadata.generation}, created ${time(object.metadata.creationTimestamp)}${mode === undefined ? "" : html`, mode ${mode}`}</p>
${planSection(kind, source.operator.plan(kind, object))}
<section><h2>Conditions</h2>${conditions(object)}</section>
${"error" in stack ? html`<section><h2>Stack</h2><p class="problem">${visibleLines(stack.error)}</p></section>` : stackSections(source, stack)}
<section><h2>Events</h2>${events(source, object)}</section>`;
}

/** What waits for an approval, and the command that gives it. */
function planSection(kind: AnyKind, plan: Plan | undefined): Html {
  if (plan === undefined) return html``;
  const { resources, notes } = objectPlan(kind, plan);
  return html`<section><h2>Plan</h2><p class="message">${visibleLines(notes.join("\n"))}</p>
${table(
  "Plan",
  ["Operation", "Type", "Name", "Fields"],
  resources.map((resource) => [
    resource.operation,
    resource.type,
    resource.name,
    html`<span class="changes">${visibleLines(describeFields(resource).join("\n"))}</span>`,
  ]),
  false,
)}
<p>To approve it: <code>kindstack approve ${visible(approvalWords(kind, plan))}</code></p></section>`;
}

function conditions(object: LiveObject): Html {
  const { conditions = [] } = statusOf(object);
  if (conditions.length === 0) return html`<p>The operator has said nothing of it yet.</p>`;
  return table(
    "Conditions",
    ["Condition", "Status", "Reason", "Message", "Since"],
    conditions.map(({ type, status, reason, message, lastTransitionTime }) => [
      type,
      badge(toneOf(type, status), status),
      reason,
      html`<span class="message">${visibleLines(message)}</span>`,
      time(lastTransitionTime),
    ]),
    false,
  );
}

/** `Reconciling` and the like are True while something is out of the ordinary. */
function toneOf(type: string, status: string): Tone {
  if (type === "Reconciling") return status === "True" ? "busy" : "idle";
  if (type === "Stalled" || type === "FieldConflict") return status === "True" ? "bad" : "good";
  return status === "True" ? "good" : status === "False" ? "bad" : "busy";
}

function stackSections(source: ConsoleSource, { name, state, history }: StackContents): Html {
  if (state === undefined) return html`<section><h2>Stack</h2><p>There is no stack ${name} yet.</p></section>`;
  const nodes = graphOf(state, (id) => source.operator.view(id));
  return html`<section><h2>Stack</h2><p class="where">${name}</p>
${drawing(nodes)}
${table(
  `Resources: ${nodes.length}`,
  ["Type", "Name", "State", "Id", "Outputs"],
  nodes.map((node) => [
    node.type,
    node.name,
    badge(node.state.tone, node.state.text),
    html`<code>${node.id}</code>`,
    html`${node.outputs.map(([output, value]) => html`<code>${output}=${value}</code> `)}`,
  ]),
)}</section>
<section><h2>Updates</h2>${table(
    `Updates of the stack: ${Math.min(SHOWN_UPDATES, history.length)}, newest first`,
    ["Started", "Took", "Operation", "Result", "Changes"],
    history
      .slice(0, SHOWN_UPDATES)
      .map((update) => [
        time(update.startTime.toISOString()),
        durationOf(update) ?? "–",
        update.kind,
        badge(RESULT_TONES[update.result] ?? "busy", update.result),
        changesOf(update),
      ]),
  )}</section>`;
}

function changesOf(update: HistoryEntry): Html {
  const lines = describeUpdate(update, SHOWN_CHANGES);
  return lines.length === 0 ? html`none` : html`<span class="changes">${visibleLines(lines.join("\n"))}</span>`;
}

function events(source: ConsoleSource, object: LiveObject): Html {
  const recorded = source.recorder.reported(object.metadata.uid);
  if (recorded.length === 0) return html`<p>This operator has reported none since its start.</p>`;
  return table(
    "Events",
    ["Last seen", "Type", "Reason", "Message", "Count"],
    recorded.map(({ time: at, type, reason, note, count }) => [
      time(at),
      badge(type === "Warning" ? "bad" : "good", type),
      reason,
      html`<span class="message">${visibleLines(note)}</span>`,
      count,
    ]),
    false,
  );
}

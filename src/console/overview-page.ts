import { type AnyKind, kindName } from "../../stacks/contract/kind";
import { readinessOf } from "../../stacks/contract/readiness";
import { countObjects, type KindCounts } from "../status/object-counts";
import { type Html, html } from "./html";
import { byUrgency, objectTable } from "./parts";
import { kindHref } from "./paths";
import type { ConsoleSource } from "./source";

const MOST_URGENT = 20;
const SHOWN_STATES = ["Stalled", "Reconciling", "Paused"] as const;

export function overviewPage(source: ConsoleSource): Html {
  const kinds = source.kinds.map((kind) => {
    const objects = source.operator.objects(kind);
    return { kind, objects, counts: countObjects(kind, objects) };
  });
  const all = kinds.reduce((sum, { objects }) => sum + objects.length, 0);
  const ready = kinds.reduce((sum, { counts }) => sum + counts.ready, 0);
  const synced = kinds.reduce((sum, { counts }) => sum + counts.synced, 0);
  const notSynced = all === synced ? "" : `, ${all - synced} of them not synced`;
  return html`<h1>${all === ready ? "Everything is ready" : `${all - ready} of ${all} objects are not ready${notSynced}`}</h1>
<p class="where">${source.server}</p>
<ul class="cards">${kinds.map(({ kind, counts }) => card(counts, kind))}</ul>
${kinds.map(({ kind, objects }) => {
  const urgent = objects.filter((object) => readinessOf(object).ready !== "True").sort(byUrgency);
  if (urgent.length === 0) return "";
  const more = urgent.length > MOST_URGENT ? ` (${MOST_URGENT} of ${urgent.length})` : "";
  return html`<section>${objectTable(kind, urgent.slice(0, MOST_URGENT), `${kindName(kind)}, not ready${more}`)}</section>`;
})}`;
}

function card({ kind: name, objects, synced, ready, states, notReady }: KindCounts, { kind, group }: AnyKind): Html {
  return html`<li class="card">
<h2><a href="${kindHref(name)}">${kind}</a></h2>
<p class="group">${group}</p>
${
  objects === 0
    ? html`<p class="count"><span>no objects</span></p>`
    : html`<p class="count">${ready}<span> of ${objects} ready</span></p>
<meter min="0" max="${objects}" value="${ready}" aria-label="${ready} of ${objects} ready"></meter>`
}
<ul class="reasons">
${synced < objects && html`<li>not synced ${objects - synced}</li>\n`}
${notReady.map(({ reason, objects }) => html`<li><a href="${kindHref(name, reason)}">${reason}</a> ${objects}</li>`)}
${SHOWN_STATES.map((state) => states[state] > 0 && html`<li>${state} ${states[state]}</li>\n`)}
</ul>
</li>`;
}

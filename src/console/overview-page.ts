import { type AnyKind, kindName } from "../../stacks/contract/kind";
import { readinessOf } from "../../stacks/contract/readiness";
import { countObjects, type KindCounts } from "../status/object-counts";
import { kindHref } from "../telemetry/console-paths";
import { type Html, html } from "./html";
import { byUrgency, objectTable } from "./parts";
import type { ConsoleSource } from "./source";

const MOST_URGENT = 20;

/** All kinds, and what of them is not Ready. */
export function overviewPage(source: ConsoleSource): Html {
  const kinds = source.kinds.map((kind) => ({ kind, objects: source.list(kind) }));
  const counts = kinds.map(({ kind, objects }) => countObjects(kind, objects));
  const all = counts.reduce((sum, { objects }) => sum + objects, 0);
  const ready = counts.reduce((sum, count) => sum + count.ready, 0);
  return html`<h1>${all === ready ? "Everything is ready" : `${all - ready} of ${all} objects are not ready`}</h1>
<p class="where">${source.server}</p>
<ul class="cards">${kinds.map(({ kind, objects }) => card(countObjects(kind, objects), kind))}</ul>
${kinds.map(({ kind, objects }) => {
  const urgent = objects.filter((object) => readinessOf(object).ready !== "True").sort(byUrgency);
  if (urgent.length === 0) return "";
  const more = urgent.length > MOST_URGENT ? ` (${MOST_URGENT} of ${urgent.length})` : "";
  return html`<section>${objectTable(kind, urgent.slice(0, MOST_URGENT), `${kindName(kind)}, not ready${more}`)}</section>`;
})}`;
}

function card({ kind: name, objects, ready, states, notReady }: KindCounts, { kind, group }: AnyKind): Html {
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
${notReady.map(({ reason, objects }) => html`<li><a href="${kindHref(name, reason)}">${reason}</a> ${objects}</li>`)}
${states.Stalled > 0 && html`<li>Stalled ${states.Stalled}</li>`}
${states.Reconciling > 0 && html`<li>Reconciling ${states.Reconciling}</li>`}
${states.Paused > 0 && html`<li>Paused ${states.Paused}</li>`}
</ul>
</li>`;
}

import { type AnyKind, kindName } from "../../stacks/contract/kind";
import { readinessOf } from "../../stacks/contract/readiness";
import { countObjects } from "../status/object-counts";
import { type Html, html } from "./html";
import { byUrgency, objectTable } from "./parts";
import { kindHref } from "./paths";
import type { ConsoleSource } from "./source";

const PAGE = 200;

/** The objects of a kind, or those of a reason, page by page. */
export function kindPage(source: ConsoleSource, kind: AnyKind, query: URLSearchParams): Html {
  const reason = query.get("reason") ?? undefined;
  const all = source.operator.objects(kind);
  const objects = all.filter((object) => reason === undefined || readinessOf(object).reason === reason).sort(byUrgency);
  const pages = Math.max(1, Math.ceil(objects.length / PAGE));
  const page = Math.min(pages, Math.max(1, Number.parseInt(query.get("page") ?? "1", 10) || 1));
  const reasons = countObjects(kind, all).notReady;
  const name = kindName(kind);
  const href = (number: number) => `${kindHref(name, reason)}${reason === undefined ? "?" : "&"}page=${number}`;
  return html`<h1>${kind.kind}</h1>
<p class="where">${name}</p>
<nav class="filters" aria-label="Reasons">
<a href="${kindHref(name)}"${reason === undefined && CURRENT}>all ${all.length}</a>
${reasons.map((each) => html`<a href="${kindHref(name, each.reason)}"${each.reason === reason && CURRENT}>${each.reason} ${each.objects}</a>`)}
</nav>
${objectTable(kind, objects.slice((page - 1) * PAGE, page * PAGE), `Objects${reason === undefined ? "" : ` with the reason ${reason}`}: ${objects.length}`)}
${
  pages > 1 &&
  html`<nav class="filters" aria-label="Pages">${page > 1 && html`<a href="${href(page - 1)}">previous</a>`} <span>${page} of ${pages}</span> ${page < pages && html`<a href="${href(page + 1)}">next</a>`}</nav>`
}`;
}

const CURRENT = html` aria-current="page"`;

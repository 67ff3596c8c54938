import type { LiveObject } from "../../providers/kubernetes/client";
import type { AnyKind } from "../../stacks/contract/kind";
import { objectKey } from "../../stacks/contract/object";
import { readinessOf } from "../../stacks/contract/readiness";
import { visible } from "../text/plain-text";
import { type Html, html, type Value } from "./html";
import { objectHref } from "./paths";

/** A state, shown by a colour and, for those who do not see it, a word. */
export type Tone = "good" | "bad" | "busy" | "idle";

export function badge(tone: Tone, text: string): Html {
  return html`<span class="badge ${tone}">${visible(text)}</span>`;
}

export function objectBadge(object: LiveObject): Html {
  const { synced, ready, reason, states } = readinessOf(object);
  const progresses = synced === "True" && !states.includes("Stalled");
  const tone = states.includes("Paused")
    ? "idle"
    : ready === "False" && !progresses && !states.includes("Deleting")
      ? "bad"
      : ready !== "True" || states.includes("Reconciling") || states.includes("Deleting")
        ? "busy"
        : "good";
  const marks = states.filter((state) => state !== "Reconciling" && state !== "Deleting");
  return html`${badge(tone, reason)}${marks.map((state) => html` ${badge(state === "Paused" ? "idle" : "bad", state)}`)}`;
}

export function time(iso: string | undefined): Html {
  if (iso === undefined || iso === "") return html`–`;
  const text = iso.replace("T", " ").replace(/(\.\d+)?Z$/, "");
  return html`<time datetime="${iso}">${text}</time>`;
}

export function objectTable(kind: AnyKind, objects: readonly LiveObject[], caption: string): Html {
  return table(
    caption,
    ["Name", "State", "Generation", "Created"],
    objects.map((object) => {
      const { metadata } = object;
      const key = objectKey(metadata);
      return [
        html`<a href="${objectHref(kind, key)}">${key}</a>`,
        objectBadge(object),
        metadata.generation,
        time(metadata.creationTimestamp),
      ];
    }),
  );
}

/** @param isShown whether the caption says more than the heading above */
export function table(
  caption: string,
  columns: readonly string[],
  rows: readonly (readonly Value[])[],
  isShown = true,
): Html {
  return html`<div class="scroll" role="region" aria-label="${caption}" tabindex="0"><table>
<caption${!isShown && HIDDEN}>${caption}</caption>
<thead><tr>${columns.map((column) => html`<th scope="col">${column}</th>`)}</tr></thead>
<tbody>${rows.map((row) => html`<tr>${row.map((cell) => html`<td>${cell}</td>`)}</tr>\n`)}</tbody>
</table></div>`;
}

const HIDDEN = html` class="hidden"`;

/** Not Ready first, then by name. */
export function byUrgency(a: LiveObject, b: LiveObject): number {
  const rank = (object: LiveObject) => ["False", "Unknown", "True"].indexOf(readinessOf(object).ready);
  return rank(a) - rank(b) || (objectKey(a.metadata) < objectKey(b.metadata) ? -1 : 1);
}

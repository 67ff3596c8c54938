import { shortened } from "../../providers/shortened";
import { objectKey } from "../../stacks/contract/object";
import { type FieldChange, UNCHECKED } from "../plan/resource-plan";
import type { Difference, ObjectPlan, Report } from "../preview/report";
import {
  byImportance,
  describeCommon,
  describeDigests,
  describeLimits,
  describeResources,
  describeSummary,
  MAX_FIELDS,
} from "../preview/wording";
import { escapeCharacter, escapeHtml, shortChange, visible } from "../text/plain-text";

/** Identifies the comment of an earlier run for a CI system. */
export const MARKER = "<!-- kindstack preview -->";
/** GitHub allows 65,536 characters in a comment, and the caller may add text. */
const LIMIT = 60_000;
const MAX_ROWS = 100;
const MAX_TEXT = 300;

/**
 * A report for a comment in a pull request: a table of the objects that something happens to, and the details folded.
 *
 * Texts from objects and files are in code spans, where Markdown, HTML and mentions have no effect.
 */
export function renderMarkdown(report: Report): string {
  const { counted, heading, rows: all, details: texts } = contentsOf(report);
  const rows = fitting(all.slice(0, MAX_ROWS), LIMIT / 2);
  const parts = [
    MARKER,
    `**Kindstack:** ${describeSummary(report)}`,
    ...(rows.length > 0 ? [[`| | kind | ${heading} | resources |`, "|---|---|---|---|", ...rows].join("\n")] : []),
    ...(all.length > rows.length ? [`… and ${all.length - rows.length} more ${counted}.`] : []),
    ...remarks(report.problems.map(({ file, message }) => `❌ ${code(file)}: ${code(message)}`)),
    ...remarks(report.unchecked.map((why) => `❓ ${code(why)}`)),
    ...remarks(describeLimits(report).map((note) => `ℹ️ ${code(note)}`)),
    ...remarks(report.unseenDeletions.map((note) => `⚠️ ${code(note)}`)),
  ];
  const details = texts.filter((text) => text !== "");
  const shown = fitting(details, LIMIT - parts.join("\n\n").length);
  const left = details.length - shown.length;
  if (left > 0) shown.push(`… the details of ${left} more ${counted} are left out.`);
  return `${[...parts, ...shown].join("\n\n")}\n`;
}

/** What the table and the folded details are about: objects, or groups of objects with the same difference. */
function contentsOf({ objects, differences }: Report) {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  if (differences !== undefined) {
    const rows = differences.map((one) => line(rowOf(one)));
    return { counted: "differences", heading: "objects", rows, details: differences.map(namesOf) };
  }
  const affected = byImportance(objects.filter(({ action, notes }) => action !== "none" || notes.length > 0));
  const rows = affected.map((plan) => line(row(plan)));
  return { counted: "objects", heading: "name", rows, details: affected.map(detailsOf) };
}

function remarks(all: readonly string[]): string[] {
  const shown = fitting(all, LIMIT / 8);
  return shown.length < all.length ? [...shown, `… and ${all.length - shown.length} more.`] : shown;
}

/** The first of the texts, as many as have so many characters with the empty lines between them. */
function fitting(texts: readonly string[], limit: number): string[] {
  const fit: string[] = [];
  let room = limit;
  for (const text of texts) {
    room -= text.length + 2;
    if (room < 0) break;
    fit.push(text);
  }
  return fit;
}

const SYMBOLS: Record<ObjectPlan["action"], string> = {
  create: "➕ create",
  adopt: "📥 adopt",
  update: "✏️ update",
  move: "✏️ move",
  "hand-over": "🤝 hand over",
  replace: "♻️ replace",
  delete: "🗑️ **delete**",
  release: "↩️ release",
  orphan: "↩️ orphan",
  paused: "⏸️ paused",
  none: "unchanged",
  invalid: "❌ **invalid**",
  failed: "⚠️ **failed**",
  unchecked: "❓ **unchecked**",
};

function row(plan: ObjectPlan): string[] {
  const result = plan.errors[0] === undefined ? describeResources(plan) : cell(plan.errors[0]);
  return [SYMBOLS[plan.action], cell(plan.kind), cell(objectKey(plan)), result];
}

function rowOf({ action, kind, objects, resources, errors }: Difference): string[] {
  const done = resources.map(
    ({ operation, type, count }) => `${operation} ${count === 1 ? "" : `${count} `}${cell(type)}`,
  );
  return [
    SYMBOLS[action],
    cell(kind),
    String(objects.length),
    errors[0] === undefined ? done.join(", ") : cell(errors[0]),
  ];
}

function namesOf({ action, kind, objects, resources, errors, notes }: Difference): string {
  const lines = [
    ...errors.map((error) => `- ${code(error)}`),
    ...resources.flatMap(({ operation, type, fields, notChecked }) => [
      `- ${operation} ${code(type)}${notChecked === undefined ? "" : `: ${code(notChecked)}`}`,
      ...fieldLines(fields, (field) => code(describeCommon(field))),
    ]),
    ...notes.map((note) => `- ${code(note)}`),
    `- ${objects.map(code).join(", ")}`,
  ];
  const title = `${objects.length} <code>${escapeHtml(visible(kind))}</code>`;
  return `<details>\n<summary>${action}: ${title}</summary>\n\n${lines.join("\n")}\n\n</details>`;
}

function detailsOf(plan: ObjectPlan): string {
  const lines = [
    ...plan.errors.map((error) => `- ${code(error)}`),
    ...plan.resources.flatMap(({ operation, type, name, fields, notChecked = "" }) => [
      `- ${operation} ${code(`${type} ${name}`)}${operation === UNCHECKED ? `: ${code(notChecked)}` : ""}`,
      ...fieldLines(fields, (field) => `${code(field.path)}: ${values(field)}`),
    ]),
    ...describeDigests(plan).map((line) => `- ${code(line)}`),
    ...plan.notes.map((note) => `- ${code(note)}`),
  ];
  if (lines.length === 0) return "";
  const title = escapeHtml(visible(shortened(`${plan.kind} ${objectKey(plan)}`, MAX_TEXT)));
  return `<details>\n<summary>${plan.action} <code>${title}</code></summary>\n\n${lines.join("\n")}\n\n</details>`;
}

function fieldLines(fields: readonly FieldChange[], describe: (field: FieldChange) => string): string[] {
  const lines = fields.slice(0, MAX_FIELDS).map((field) => `  - ${describe(field)}`);
  return fields.length > MAX_FIELDS ? [...lines, `  - … and ${fields.length - MAX_FIELDS} more fields`] : lines;
}

function values(field: { before?: unknown; after?: unknown }): string {
  const [before, given] = shortChange(field.before, field.after);
  const after = "after" in field ? code(given) : "removed";
  return "before" in field ? `${code(before)} → ${after}` : after;
}

/** A code span: its fence is longer than any run of backticks in it. */
function code(text: string): string {
  const line = visible(shortened(text, MAX_TEXT));
  const longest = Math.max(0, ...[...line.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  // An invisible space separates the fence from a backtick, and fills an empty span.
  const space = line === "" || /^[` ]|[` ]$/.test(line) ? " " : "";
  return `${fence}${space}${line}${space}${fence}`;
}

/** A code span in a table, where a pipe would end the cell even behind a backslash. */
function cell(text: string): string {
  return code(text).replaceAll("|", escapeCharacter);
}

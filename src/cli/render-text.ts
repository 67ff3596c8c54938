import { objectKey } from "../../stacks/contract/object";
import { type ResourcePlan, UNCHECKED } from "../plan/resource-plan";
import type { Difference, ObjectPlan, Report } from "../preview/report";
import {
  byImportance,
  describeCommon,
  describeDifference,
  describeDigests,
  describeFields,
  describeLimits,
  describeResources,
  describeSummary,
} from "../preview/wording";
import { coloured } from "../text/colour";
import { visible } from "../text/plain-text";
import { some } from "../text/some";
import { renderTable } from "../text/table";

const SIGNS: Record<ResourcePlan["operation"], string> = {
  create: "+",
  adopt: ">",
  update: "~",
  move: "→",
  "hand-over": "⇄",
  replace: "±",
  delete: "-",
  release: "<",
  orphan: "<",
  unchecked: "?",
};

/** A report for a terminal: a table of the objects, then what happens to each of their resources. */
export function renderText(report: Report): string {
  const objects = byImportance(report.objects);
  const row = (plan: ObjectPlan) => [plan.kind, objectKey(plan), plan.action, describeResources(plan)].map(visible);
  const table = renderTable(["kind", "name", "action", "resources"], objects.map(row));
  const notes = [...describeLimits(report), ...report.unseenDeletions];
  const remarks = [
    ...report.problems.map(({ file, message }) => `${coloured("error")}: ${visible(file)}: ${visible(message)}`),
    ...report.unchecked.map((why) => `${coloured(UNCHECKED)}: ${visible(why)}`),
    ...notes.map((note) => `note: ${visible(note)}`),
  ];
  const details = report.differences?.map(renderDifference) ?? [
    ...(objects.length > 0 ? [table] : []),
    ...objects.map(renderObject).filter((text) => text !== ""),
  ];
  return [...details, ...(remarks.length > 0 ? [remarks.join("\n")] : []), describeSummary(report)].join("\n\n");
}

/** So many names of a group are shown on a terminal; JSON and Markdown have all. */
const MAX_NAMES = 20;

function renderDifference(difference: Difference): string {
  const { kind, action, errors, resources, objects, notes } = difference;
  const lines = [
    ...errorLines(action, errors),
    ...resources.flatMap(({ operation, type, fields, notChecked }) => [
      `  ${signed(operation)} ${visible(type)}`,
      ...(notChecked === undefined ? [] : [`      ${visible(notChecked)}`]),
      ...fields.map((field) => `      ${visible(describeCommon(field))}`),
    ]),
    ...notes.map((note) => `  note: ${visible(note)}`),
    `  ${visible(some(objects, MAX_NAMES))}`,
  ];
  return [`${visible(kind)}: ${describeDifference(difference)}`, ...lines].join("\n");
}

function errorLines(action: ObjectPlan["action"], errors: readonly string[]): string[] {
  return errors.map((error) => `  ${coloured(action === UNCHECKED ? UNCHECKED : "error")}: ${visible(error)}`);
}

function signed(operation: ResourcePlan["operation"]): string {
  return coloured(operation, `${SIGNS[operation]} ${operation}`);
}

function renderObject(plan: ObjectPlan): string {
  const lines = [
    ...errorLines(plan.action, plan.errors),
    ...plan.resources.flatMap((resource) => {
      const { operation, type, name, notChecked = "" } = resource;
      return [
        `  ${signed(operation)} ${visible(type)} ${visible(name)}`,
        ...(operation === UNCHECKED ? [`      ${visible(notChecked)}`] : []),
        ...describeFields(resource).map((line) => `      ${visible(line)}`),
      ];
    }),
    ...describeDigests(plan).map((line) => `  ${visible(line)}`),
    ...plan.notes.map((note) => `  note: ${visible(note)}`),
  ];
  if (lines.length === 0) return "";
  return [`${visible(`${plan.kind} ${objectKey(plan)}`)}: ${coloured(plan.action)}`, ...lines].join("\n");
}

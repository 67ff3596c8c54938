import { objectKey } from "../../stacks/contract/object";
import { visible } from "../text/plain-text";
import { renderTable } from "../text/table";
import type { ObjectPlan, Report, ResourcePlan } from "./report";
import {
  byImportance,
  describeDigests,
  describeField,
  describeResources,
  describeSummary,
  describeUnchecked,
} from "./wording";

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
};

/** A report for a terminal: a table of the objects, then what happens to each of their resources. */
export function renderText(report: Report): string {
  const objects = byImportance(report.objects);
  const row = (plan: ObjectPlan) => [plan.kind, objectKey(plan), plan.action, describeResources(plan)].map(visible);
  const table = renderTable(["kind", "name", "action", "resources"], objects.map(row));
  const notes = [...report.notes, ...report.unseenDeletions, ...describeUnchecked(report)];
  const remarks = [
    ...report.problems.map(({ file, message }) => `error: ${visible(file)}: ${visible(message)}`),
    ...notes.map((note) => `note: ${visible(note)}`),
  ];
  return [
    ...(objects.length > 0 ? [table] : []),
    ...objects.map(renderObject).filter((text) => text !== ""),
    ...(remarks.length > 0 ? [remarks.join("\n")] : []),
    describeSummary(report),
  ].join("\n\n");
}

function renderObject(plan: ObjectPlan): string {
  const lines = [
    ...plan.errors.map((error) => `  error: ${visible(error)}`),
    ...plan.resources.flatMap(({ operation, type, name, fields }) => [
      `  ${SIGNS[operation]} ${operation} ${visible(type)} ${visible(name)}`,
      ...fields.map((field) => `      ${visible(describeField(field))}`),
    ]),
    ...describeDigests(plan).map((line) => `  ${visible(line)}`),
    ...plan.notes.map((note) => `  note: ${visible(note)}`),
  ];
  if (lines.length === 0) return "";
  return [`${visible(`${plan.kind} ${objectKey(plan)}`)}: ${plan.action}`, ...lines].join("\n");
}

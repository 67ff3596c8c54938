import { isDeepStrictEqual } from "node:util";
import { objectKey } from "../../stacks/contract/object";
import type { FieldChange, ResourcePlan } from "../plan/resource-plan";
import type { Difference, ObjectPlan, Report } from "./report";
import { byImportance } from "./wording";

/*
 * Many objects of a kind change in the same way when its program does: what a reader wants to know is which ways there are, and
 * how many objects each of them concerns.
 */

/** A report on all objects of kinds, with {@link differencesOf} them. */
export function byDifference(report: Report): Report {
  return { ...report, differences: differencesOf(report.objects) };
}

/** The objects of a report by what would happen to them, the most severe first, then the largest group. */
export function differencesOf(objects: readonly ObjectPlan[]): Difference[] {
  const groups = [...Map.groupBy(objects, identityOf).values()];
  return byImportance(groups.map(differenceOf).sort((a, b) => b.objects.length - a.objects.length));
}

/** The same for objects with the same difference, whatever they and their resources are called. */
function identityOf(plan: ObjectPlan): string {
  const { kind, action, resources, errors } = plan;
  return JSON.stringify([kind, action, resources.map(signatureOf).sort(), errors.map((error) => unnamed(plan, error))]);
}

function signatureOf({ operation, type, fields }: ResourcePlan): string {
  return JSON.stringify([operation, type, fields.map(({ path }) => path)]);
}

function unnamed(plan: ObjectPlan, text: string): string {
  return text.replaceAll(objectKey(plan), "*").replaceAll(plan.name, "*");
}

function differenceOf(group: readonly ObjectPlan[]): Difference {
  const [{ kind, action, errors }] = group as [ObjectPlan];
  const alike = Map.groupBy(
    group.flatMap(({ resources }) => resources),
    signatureOf,
  );
  const resources = [...alike.values()].map((same) => {
    const [{ operation, type, fields }] = same as [ResourcePlan];
    const common = fields.map((_, index) => commonField(same.map((resource) => resource.fields[index] as FieldChange)));
    return { operation, type, count: same.length / group.length, fields: common };
  });
  return { kind, action, objects: group.map(objectKey).sort(), resources, errors };
}

function commonField(fields: readonly FieldChange[]): FieldChange {
  const [first] = fields as [FieldChange];
  return fields.every((field) => isDeepStrictEqual(field, first)) ? first : { path: first.path };
}

import type { TLocalizedValidationError } from "typebox/error";
import { Pointer } from "typebox/value";

/** `spec.age: -1 must be >= 0`, of what a schema refuses. @param root the path of the validated value */
export function describeErrors(
  errors: readonly TLocalizedValidationError[],
  validated: unknown,
  ...root: string[]
): string {
  const telling = tellingErrors(errors);
  const [error] = telling;
  if (error === undefined) throw new Error("there is no error to describe");
  let { instancePath: pointer } = error;
  if (error.keyword === "required") pointer += `/${error.params.requiredProperties[0]}`;
  const path = [...root, ...Pointer.Indices(pointer)].join(".");
  const value = JSON.stringify(Pointer.Get(validated, pointer))?.slice(0, 200) ?? "missing,";
  return `${path}: ${value} ${allowedBy(telling)}`;
}

/** What is allowed where the first of some errors is. */
function allowedBy(errors: readonly TLocalizedValidationError[]): string {
  const [first] = errors;
  if (first?.keyword === "required") return "must be given";
  const values: unknown[] = [];
  const messages: string[] = [];
  for (const error of errors) {
    if (error.instancePath !== first?.instancePath) continue;
    if (error.keyword === "const") values.push(error.params.allowedValue);
    else if (error.keyword === "enum") values.push(...error.params.allowedValues);
    else if (error.keyword !== "anyOf") messages.push(error.message);
  }
  const shown = values.map((value) => JSON.stringify(value)).join(", ");
  if (values.length > 0) messages.unshift(values.length === 1 ? `must be ${shown}` : `must be one of ${shown}`);
  return [...new Set(messages)].join(" or ");
}

/**
 * Of the errors of all forms of a union, those of the form that is meant, which its literals tell. Where they tell none, those of
 * the literals.
 */
function tellingErrors(
  errors: readonly TLocalizedValidationError[],
  inSchema = "",
): readonly TLocalizedValidationError[] {
  const [, union] = /^(.*?\/anyOf\/)\d+/.exec(errors[0]?.schemaPath.slice(inSchema.length) ?? "") ?? [];
  if (union === undefined) return errors.slice(0, 1);
  const forms = new Map<string, TLocalizedValidationError[]>();
  for (const error of errors) {
    if (!error.schemaPath.startsWith(inSchema + union)) continue;
    const [form = ""] = error.schemaPath.slice(inSchema.length + union.length).split("/", 1);
    forms.set(form, [...(forms.get(form) ?? []), error]);
  }
  // A literal of a union inside a form tells nothing of the form.
  const isLiteral = ({ keyword, schemaPath }: TLocalizedValidationError) =>
    (keyword === "const" || keyword === "enum") && !schemaPath.slice((inSchema + union).length).includes("/anyOf/");
  const meant = [...forms].filter(([, found]) => !found.some(isLiteral));
  const [form] = meant;
  if (meant.length === 1 && form !== undefined && forms.size > 1) {
    return tellingErrors(form[1], inSchema + union + form[0]);
  }
  const all = [...forms.values()].flat();
  const literals = all.filter(isLiteral);
  return literals.length > 0 && meant.length === 0 ? literals : all;
}

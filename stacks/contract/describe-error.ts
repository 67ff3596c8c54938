import type { TLocalizedValidationError } from "typebox/error";
import { Pointer } from "typebox/value";

/** `spec.age: -1 must be >= 0`, of what a schema refuses. @param root the path of the validated value */
export function describeError(error: TLocalizedValidationError, validated: unknown, ...root: string[]): string {
  let { instancePath: pointer, message: allowed } = error;
  if (error.keyword === "required") {
    pointer += `/${error.params.requiredProperties[0]}`;
    allowed = "must be given";
  } else if (error.keyword === "enum") {
    allowed = `must be one of ${error.params.allowedValues.map((value) => JSON.stringify(value)).join(", ")}`;
  }
  const path = [...root, ...Pointer.Indices(pointer)].join(".");
  return `${path}: ${JSON.stringify(Pointer.Get(validated, pointer))?.slice(0, 200) ?? "missing,"} ${allowed}`;
}

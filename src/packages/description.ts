import type { FunctionPath } from "./messages";

/** Where a definition has a function, its description has this. */
const FUNCTION = "kindstack.dev/function";
/** Schemas: they are compared and compiled as they are, and may refer to themselves. */
const OPAQUE = ["spec", "status"];

/** A definition as data: a copy with marks in place of functions. */
export function describeValue(value: unknown): unknown {
  if (typeof value === "function") return { [FUNCTION]: true };
  if (typeof value !== "object" || value === null || value instanceof RegExp) return value;
  if (Array.isArray(value)) return value.map(describeValue);
  return Object.fromEntries(
    Object.entries(value).map(([name, part]) => [
      name,
      OPAQUE.includes(name) ? withoutFunctions(part) : describeValue(part),
    ]),
  );
}

function withoutFunctions(value: unknown, copies = new Map<object, unknown>()): unknown {
  if (typeof value !== "object" || value === null || value instanceof RegExp) return value;
  const known = copies.get(value);
  if (known !== undefined) return known;
  const copy: unknown = Array.isArray(value) ? [] : {};
  copies.set(value, copy);
  for (const [name, part] of Object.entries(value)) {
    if (typeof part !== "function") (copy as Record<string, unknown>)[name] = withoutFunctions(part, copies);
  }
  return copy;
}

/** The definition of a description, with functions that `call` makes. */
export function fromDescription(
  value: unknown,
  call: (path: FunctionPath) => unknown,
  path: FunctionPath = [],
): unknown {
  if (typeof value !== "object" || value === null || value instanceof RegExp) return value;
  if (FUNCTION in value) return call(path);
  if (Array.isArray(value)) return value.map((part, index) => fromDescription(part, call, [...path, index]));
  return Object.fromEntries(
    Object.entries(value).map(([name, part]) => {
      return [name, OPAQUE.includes(name) ? part : fromDescription(part, call, [...path, name])];
    }),
  );
}

import { isDeepStrictEqual } from "node:util";

/*
 * Paths of fields in objects, as messages show them and annotations name them: `spec.containers[name="web"].image`,
 * `metadata.labels["example.com/team"]`; and the keys of `fieldsV1` trees that lead to the same fields.
 */

/** Whether a field is the one at a path, or below it. */
export function covers(path: string, field: string): boolean {
  return field === path || (field.startsWith(path) && /^[.[]/.test(field.slice(path.length)));
}

/** `.name`, or `["a.b/c"]` for what is no plain name. */
export function nameSegment(name: string, isFirst: boolean): string {
  if (!/^[a-z_][\w-]*$/i.test(name)) return `[${JSON.stringify(name)}]`;
  return isFirst ? name : `.${name}`;
}

/** `[name="web"]`: an item of a list by the fields that tell it from others. */
export function itemSegment(keys: readonly string[], item: Readonly<Record<string, unknown>>): string {
  const shown = keys.flatMap((key) => (item[key] === undefined ? [] : [`${key}=${JSON.stringify(item[key])}`]));
  return `[${shown.join(",")}]`;
}

/**
 * What stands behind a key of a `fieldsV1` tree: `f:` a field, `k:` an item by its keys, `v:` an item by its value, `i:` by its
 * index, `.` the thing itself.
 */
export function partAt(value: unknown, key: string, isFirst: boolean): { part: unknown; segment: string } {
  if (key === ".") return { part: value !== undefined, segment: "" };
  const name = key.slice(2);
  if (key.startsWith("f:")) {
    return { part: isRecord(value) ? value[name] : undefined, segment: nameSegment(name, isFirst) };
  }
  const items = Array.isArray(value) ? value : [];
  if (key.startsWith("k:")) {
    const keys = JSON.parse(name) as Record<string, unknown>;
    return { part: items.find((item) => isItem(item, keys)), segment: itemSegment(Object.keys(keys), keys) };
  }
  if (key.startsWith("i:")) return { part: items[Number(name)], segment: `[${name}]` };
  const wanted = JSON.parse(name) as unknown;
  return { part: items.find((item) => isDeepStrictEqual(item, wanted)), segment: `[${name}]` };
}

/** Whether these keys are a list item's. A key that a manifest leaves out is one that the server fills in. */
export function isItem(item: unknown, keys: Readonly<Record<string, unknown>>): boolean {
  return isRecord(item) && Object.entries(keys).every(([name, is]) => isDeepStrictEqual(item[name] ?? is, is));
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** One step of a path: a name, the index of a list's item, or the fields that tell it from others. */
type Step = string | number | Readonly<Record<string, unknown>>;

const STEP = /^(?:\.?([a-z_][\w-]*)|\[("(?:[^"\\]|\\.)*"|\d+)\]|\[([a-z]\w*=[^\]]+)\])/i;

export function parsePath(path: string): Step[] | undefined {
  const steps: Step[] = [];
  for (let rest = path; rest !== ""; ) {
    const [step, name, literal, item] = STEP.exec(rest) ?? [];
    if (step === undefined || (steps.length === 0) !== (name !== undefined && !step.startsWith("."))) return undefined;
    try {
      steps.push(name ?? (literal === undefined ? parseItem(item ?? "") : (JSON.parse(literal) as string | number)));
    } catch {
      return undefined;
    }
    rest = rest.slice(step.length);
  }
  return steps.length === 0 ? undefined : steps;
}

function parseItem(text: string): Record<string, unknown> {
  const parts = [...text.matchAll(/([a-z]\w*)=("(?:[^"\\]|\\.)*"|[^,]+)(?:,|$)/gi)];
  return Object.fromEntries(parts.map(([, name, value]) => [name, JSON.parse(value ?? "")]));
}

export function fieldAt(value: unknown, [step, ...rest]: readonly Step[]): unknown {
  if (step === undefined) return value;
  if (typeof step === "string") return isRecord(value) ? fieldAt(value[step], rest) : undefined;
  const items = Array.isArray(value) ? value : [];
  return fieldAt(typeof step === "number" ? items[step] : items.find((item) => isItem(item, step)), rest);
}

/** Whether two objects differ in the field at a path; `*` is all of them. */
export function differsIn(path: string, one: object, other: object): boolean {
  const steps = path === "*" ? [] : parsePath(path);
  return steps !== undefined && !isDeepStrictEqual(fieldAt(one, steps), fieldAt(other, steps));
}

/** A value whose field, which it has, is another one, or with `undefined` none. */
export function withField<T>(value: T, [step, ...rest]: readonly Step[], field: unknown): T {
  if (step === undefined) return field as T;
  if (typeof step !== "string") {
    if (!Array.isArray(value)) return value;
    return value.flatMap((item, index) => {
      if (typeof step === "number" ? step !== index : !isItem(item, step)) return [item];
      const changed = withField(item, rest, field) as unknown;
      return changed === undefined ? [] : [changed];
    }) as T;
  }
  if (!isRecord(value) || !(step in value)) return value;
  const { [step]: before, ...others } = value;
  const changed = withField(before, rest, field);
  return (changed === undefined ? others : { ...others, [step]: changed }) as T;
}

import { isDeepStrictEqual } from "node:util";
import { PROVIDER_PROPERTY } from "../../providers/dynamic";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import type { Properties } from "../../providers/provider";
import type { PlannedChange } from "../automation/planned-changes";

/** One field that would change; without `before` it is new, without `after` it goes. */
export interface FieldChange {
  /** `metadata.annotations["kindstack.dev/paused"]` */
  path: string;
  before?: unknown;
  after?: unknown;
}

/** Properties that say nothing about what a resource is. */
const HIDDEN: readonly string[] = ["owner", PROVIDER_PROPERTY];
const SECRET = "[secret]";

/**
 * The fields that an update or a replacement would change: what the program gives, compared with what the state has.
 *
 * @param live the Kubernetes object as it is, if it is known: after a refresh it tells what has drifted
 */
export function changedFields({ old, inputs }: PlannedChange, live?: LiveObject): FieldChange[] {
  if (old === undefined || inputs === undefined) return [];
  const fields = Object.keys(inputs)
    .filter((name) => !HIDDEN.includes(name))
    .flatMap((name) =>
      // Outputs, since a refresh puts there what it found.
      compare(
        name in old.outputs ? old.outputs[name] : old.inputs[name],
        inputs[name],
        name === "manifest" ? [] : [name],
      ),
    );
  if (fields.length === 0 && old.outputs.drifted === true && live !== undefined) {
    fields.push(...compareApplied(live, inputs.manifest, []));
  }
  const secret = isSecret(inputs);
  return fields.map(({ path, ...values }) => ({
    path: formatPath(path),
    ...(secret && /^(data|stringData)$/.test(path[0] ?? "") ? hide(values) : values),
  }));
}

/** The paths in which two values differ. */
export function changedPaths(before: unknown, after: unknown): string[] {
  return compare(before, after, []).map(({ path }) => formatPath(path));
}

interface Difference {
  path: string[];
  before?: unknown;
  after?: unknown;
}

function compare(before: unknown, after: unknown, path: string[]): Difference[] {
  if (isDeepStrictEqual(before, after)) return [];
  if (isRecord(before) && isRecord(after)) {
    const names = new Set([...Object.keys(before), ...Object.keys(after)]);
    return [...names].flatMap((name) => compare(before[name], after[name], [...path, name]));
  }
  if (Array.isArray(before) && Array.isArray(after) && before.length === after.length && before.every(isRecord)) {
    return before.flatMap((item, index) => compare(item, after[index], [...path, String(index)]));
  }
  return [{ path, ...(before !== undefined && { before }), ...(after !== undefined && { after }) }];
}

/** Only what the manifest names: everything else in a live object belongs to the server or another manager. */
function compareApplied(live: unknown, applied: unknown, path: string[]): Difference[] {
  if (isRecord(applied) && isRecord(live)) {
    return Object.keys(applied).flatMap((name) => compareApplied(live[name], applied[name], [...path, name]));
  }
  if (Array.isArray(applied) && Array.isArray(live) && applied.length === live.length) {
    return applied.flatMap((item, index) => compareApplied(live[index], item, [...path, String(index)]));
  }
  return compare(live, applied, path);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isSecret(inputs: Properties): boolean {
  const manifest = inputs.manifest as Partial<Manifest> | undefined;
  return manifest?.kind === "Secret" && manifest.apiVersion === "v1";
}

function hide(values: Omit<Difference, "path">): Omit<Difference, "path"> {
  return {
    ...("before" in values && { before: SECRET }),
    ...("after" in values && { after: SECRET }),
  };
}

function formatPath(path: readonly string[]): string {
  return path
    .map((name, index) => {
      if (/^\d+$/.test(name)) return `[${name}]`;
      if (!/^[\w-]+$/.test(name)) return `[${JSON.stringify(name)}]`;
      return index === 0 ? name : `.${name}`;
    })
    .join("");
}

import type { FieldDrift } from "../provider";
import { findFieldDrift } from "./field-differences";
import { covers, fieldAt, parsePath, withField } from "./field-path";
import type { ObjectInputs } from "./object-inputs";
import { withStoredData } from "./object-types";
import { isOwnEntry, managedPaths } from "./ownership";
import type { LiveObject, Manifest } from "./types";

/** A field that is left to others: `Deployment/web:spec.replicas`, or `Deployment:spec.replicas` of any name. */
const IGNORED = /^([A-Z][A-Za-z0-9]*)(?:\/([a-z0-9]([-a-z0-9.:]*[a-z0-9])?))?:(?=[a-z])(.+)$/;
/** Before each of several. */
const SEPARATOR = /[\s,;]+(?=[A-Z][A-Za-z0-9]*(?:\/[-a-z0-9.:]+)?:)/;

/** The fields that a text names, one after the other. @returns what is none of the form, as `problem` */
export function parseIgnoredFields(text: string): { fields: string[]; problem?: string } {
  const fields = text.trim() === "" ? [] : text.trim().split(SEPARATOR);
  // The items of a list have no lasting places.
  const isNone = (steps: ReturnType<typeof parsePath>) => steps?.some((step) => typeof step === "number") ?? true;
  const wrong = fields.find((field) => isNone(parsePath(IGNORED.exec(field)?.[4] ?? "")));
  return wrong === undefined ? { fields } : { fields: [], problem: wrong };
}

/** Of fields that are left to others, the paths of those of one object. */
export function ignoredPaths(
  fields: readonly string[] | undefined,
  { kind, metadata }: Pick<Manifest, "kind" | "metadata">,
): string[] {
  return (fields ?? []).flatMap((field) => {
    const [, ofKind, ofName, , path] = IGNORED.exec(field) ?? [];
    const isNamed = ofKind === kind && (ofName === undefined || ofName === metadata.name);
    return isNamed && path !== undefined ? [path] : [];
  });
}

type Applied = Pick<ObjectInputs, "manifest" | "owner">;

/** What is applied of a manifest to a live object, besides whose the object is. */
export function appliedManifest({ manifest, owner }: Applied, live: LiveObject | undefined): Manifest {
  return withoutIgnored(withStoredData(manifest), live, ignoredPaths(owner.ignoreFields, manifest));
}

/** The fields whose live value differs from the manifest, without fields that are left to other clients. */
export function driftOf({ manifest, owner }: Applied, live: LiveObject): FieldDrift[] {
  return findFieldDrift(withStoredData(manifest), live, ignoredPaths(owner.ignoreFields, manifest));
}

/**
 * A manifest without what is left to others. Omitting a field from an apply removes it: until another manager has it, its live
 * value is applied.
 */
export function withoutIgnored(manifest: Manifest, live: LiveObject | undefined, paths: readonly string[]): Manifest {
  if (live === undefined) return manifest;
  const others = (live.metadata.managedFields ?? [])
    .filter((entry) => !isOwnEntry(entry) && entry.subresource !== "status")
    .flatMap((entry) => managedPaths(entry, live));
  return paths.reduce((result, path) => {
    const steps = parsePath(path) ?? [];
    const isOthers = others.some((field) => covers(path, field) || covers(field, path));
    return withField(result, steps, isOthers ? undefined : fieldAt(live, steps));
  }, manifest);
}

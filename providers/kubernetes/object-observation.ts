import { planOutdated } from "../observation";
import type { Hold } from "../provider";
import { type Applied, effectOf, isDisplaced } from "./apply-effect";
import { liveFields } from "./field-differences";
import { covers, isRecord, parsePath, withField } from "./field-path";
import { driftOf, ignoredPaths } from "./ignored-fields";
import type { ObjectInputs, ObjectOutputs } from "./object-inputs";
import { withStoredData } from "./object-types";
import {
  CREATED_ANNOTATION,
  isOwnEntry,
  managedPaths,
  OWNER_ANNOTATION,
  OWNER_UID_LABEL,
  ownerUidOf,
  wasApplied,
  wasCreated,
} from "./ownership";
import type { LiveObject, Manifest } from "./types";

/*
 * What a write of an object overwrites: the object's identity, its owner, and the live values of the manifest's fields. Fields
 * of other managers, the status and the version are no part of it.
 */

/** Inputs with which object they are about, as far as it is known: the state's, where a preview does not know any input. */
export function nameable(inputs: ObjectInputs, former: Applied | undefined): ObjectInputs | undefined {
  if (isRecord(inputs.manifest?.metadata)) return inputs;
  return former && { ...inputs, manifest: former.manifest };
}

/** What an apply finds; see {@link DynamicProvider.observe}. @param former as the state has it */
export function overwrittenBy(
  given: ObjectInputs,
  live: LiveObject | undefined,
  owners: readonly string[],
  former: Applied | undefined,
): unknown {
  // An update makes again what is gone, which is something else than to change what is there.
  const gone = former === undefined ? null : "gone";
  const inputs = nameable(given, former);
  if (inputs === undefined) return gone;
  const effect = effectOf(live, inputs, owners, former);
  if (live === undefined || effect === "wait") return gone;
  // What is the owner's own, and is replaced whatever it says: an update that was cut off has deleted it.
  if (effect === "replace" && former !== undefined && !isDisplaced(live, inputs)) return gone;
  if (inputs === given && isDone(inputs, live)) return null;
  return { owner: ownerUidOf(live) ?? null, ...identityOf(live), fields: fieldsOf(inputs, [inputs, former], live) };
}

/** What a deletion finds, of an object that is still its owner's. */
export function removedFrom(outs: ObjectOutputs, live: LiveObject): unknown {
  // It waits for its end, or an update that was cut off has released it.
  if (live.metadata.deletionTimestamp !== undefined || !wasApplied(live)) return null;
  // One that has lost its label is the owner's still.
  const { uid, created } = identityOf(live);
  const isMarked = ownerUidOf(live) !== undefined;
  return { uid, created: isMarked ? created : outs.created, fields: fieldsOf(outs, [outs], live) };
}

function identityOf(live: LiveObject) {
  return { uid: live.metadata.uid, created: wasCreated(live) };
}

/** The error about a write that is held to a plan and finds something else. @param former as the state has it */
export function refuseOutdated(
  hold: Hold,
  found: unknown,
  { manifest, owner }: ObjectInputs,
  live: LiveObject | undefined,
  former: Applied | undefined,
): void {
  if (hold.admits(found)) return;
  const drift = live && former ? driftOf({ manifest: former.manifest, owner }, live) : [];
  const changed = drift.map(({ field }) => field);
  throw outdatedObject(manifest, changed);
}

function outdatedObject({ kind, metadata }: Manifest, changed: readonly string[]): Error {
  return planOutdated(`${kind} ${metadata.name}`, changed);
}

/** The live values at the paths of manifests. */
function fieldsOf(
  { owner, manifest }: ObjectInputs,
  applied: readonly (Pick<ObjectInputs, "manifest"> | undefined)[],
  live: LiveObject,
): Record<string, unknown> {
  const ignored = ignoredPaths(owner.ignoreFields, manifest);
  const rest = ignored.reduce((object, path) => withField(object, parsePath(path) ?? [], undefined), live);
  const fields = applied.flatMap((one) =>
    isRecord(one?.manifest) ? liveFields(withStoredData(one.manifest), rest) : [],
  );
  // The garbage collector drops references.
  const counted = fields.filter(([path]) => !path.startsWith("metadata.ownerReferences"));
  return Object.fromEntries(counted.filter(([path]) => !ignored.some((other) => covers(other, path))));
}

/**
 * Whether an object is as it is to be already, and the owner's: an update was cut off after it had applied or created it. The
 * apply changes nothing then, and nothing is missing but what follows a creation.
 */
function isDone({ manifest, owner, initial }: ObjectInputs, live: LiveObject): boolean {
  if (ownerUidOf(live) !== owner.uid) return false;
  const isAs = (wanted: Manifest) => driftOf({ manifest: wanted, owner }, live).length === 0;
  const own = live.metadata.managedFields?.find(isOwnEntry);
  if (own === undefined) return wasCreated(live) && isAs((initial ?? { manifest }).manifest);
  const ignored = ignoredPaths(owner.ignoreFields, manifest);
  const paths = [...ignored, ...MARKS, ...liveFields(withStoredData(manifest), live).map(([path]) => path)];
  const isKept = (field: string) => paths.some((path) => covers(path, field) || covers(field, path));
  return isAs(manifest) && managedPaths(own, live).every(isKept);
}

const MARKS = [
  `metadata.labels["${OWNER_UID_LABEL}"]`,
  ...[OWNER_ANNOTATION, CREATED_ANNOTATION].map((name) => `metadata.annotations["${name}"]`),
];

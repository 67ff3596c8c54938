import { errorMessageOf } from "../../providers/errors";
import { providersOf } from "../../providers/index";
import { type Applied, type ApplyEffect, effectOf } from "../../providers/kubernetes/apply-effect";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import { isObjectOutputs, OBJECT_STUB } from "../../providers/kubernetes/object";
import type { ObjectInputs } from "../../providers/kubernetes/object-inputs";
import { withoutOwnReferences } from "../../providers/kubernetes/owner-references";
import { ownerUidOf } from "../../providers/kubernetes/ownership";
import { isDeletable } from "../../providers/kubernetes/remove-object";
import type { Lookup } from "../../providers/kubernetes/types";
import { foundExisting, type Observations } from "../../providers/observation";
import type { Properties } from "../../providers/provider";
import { isRetained, PROVIDER_PROPERTY } from "../../providers/resource-options";
import type { AnyKind } from "../../stacks/contract/kind";
import { objectId } from "../../stacks/contract/object";
import type { StepAction } from "../../stacks/contract/plan";
import type { PlannedChange } from "../automation/planned-changes";
import { typeWord } from "../automation/urn";
import { adoptedFields, changedFields, createdFields } from "./fields";
import { type FieldChange, type ResourcePlan, UNCHECKED } from "./resource-plan";

/** A change of a stack's resource, with what it does to what is alive. */
export interface PlannedResource {
  change: PlannedChange;
  /** As the report has it. */
  shown: ResourcePlan;
  /** Of a Kubernetes object that is to be applied. */
  inputs?: ObjectInputs;
  /** What has the object's name now; also undefined when that is unknown. */
  live?: LiveObject | undefined;
  /** Why that is unknown. */
  lookupError?: unknown;
  effect?: ApplyEffect;
  /** Whether another owner has it: set by what looks for that. */
  refused?: true;
}

/** Whose changes they are. */
interface Changing {
  kind: AnyKind;
  /** The UID of the object whose stack it is. */
  uid: string | undefined;
  operation: PlanOperation;
}

/** What is done to a stack: with `release`, it is removed, and its resources stay. */
export type PlanOperation = "update" | "delete" | "release";

/** The id of the Kubernetes object that a change is about, if it is about one. */
export function touchedObject({ inputs, old }: PlannedChange): string | undefined {
  return idOf(inputs?.manifest ?? old?.inputs.manifest);
}

/** The id of what may be a manifest. */
export function idOf(manifest: unknown): string | undefined {
  const { apiVersion, kind, metadata } = (manifest ?? {}) as Partial<Manifest>;
  if (typeof apiVersion !== "string" || typeof kind !== "string" || typeof metadata?.name !== "string") {
    return undefined;
  }
  return objectId({ apiVersion, kind, metadata });
}

/** What the state knows of an object that was applied. */
export function appliedBefore(old: PlannedChange["old"]): Applied | undefined {
  return old !== undefined && isObjectOutputs(old.outputs) ? old.outputs : undefined;
}

/** The owner in the state counts as well: an object that is created again takes over its predecessor's resources. */
export function ownersOf({ uid }: { uid: string }, old: PlannedChange["old"]): string[] {
  const former = (old?.outputs.owner as { uid?: string } | undefined)?.uid;
  return former === undefined ? [uid] : [uid, former];
}

/**
 * What changes, by name: the engine's order differs from one preview to the next.
 *
 * @param observed what providers have found besides Kubernetes objects; only a plan that binds has it
 */
export async function plannedResources(
  changes: readonly PlannedChange[],
  look: (manifest: Manifest) => Promise<Lookup>,
  changing: Changing,
  observed: Observations = new Map(),
): Promise<PlannedResource[]> {
  const moves = movesAmong(changes, changing.kind);
  const resources = changes.map(async (change): Promise<PlannedResource[]> => {
    const { operation, inputs, old, name } = change;
    if (operation === "same" || (operation === "delete" && moves.isKept(change))) return [];
    const isObject = inputs?.[PROVIDER_PROPERTY] === OBJECT_STUB;
    const id = touchedObject(change);
    const manifest = (inputs?.manifest ?? old?.inputs.manifest) as Manifest;
    const lookup = id === undefined ? undefined : await look(manifest);
    const live = lookup?.outcome === "found" ? lookup.object : undefined;
    const planned = (operation: ResourcePlan["operation"], fields: FieldChange[]): PlannedResource => {
      const shown = { name, type: typeWord(change.type), operation, fields };
      if (lookup?.outcome !== "unknown") return { change, shown };
      const { error: lookupError } = lookup;
      const what = change.operation === "delete" ? "deleted" : "created";
      const notChecked = `whether it is ${what}: ${errorMessageOf(lookupError)}`;
      return { change, shown: { ...shown, ...(operation === UNCHECKED && { notChecked }) }, lookupError };
    };
    if (operation === "delete") return [{ ...planned(deletionOf(change, lookup, changing), []), live }];
    // What is gone cannot move. Where a move loses what the resource had, the loss matters more.
    const isMove = lookup?.outcome !== "absent" && (operation !== "replace" || moves.isKept(change));
    const source = isMove ? moves.sourceOf(change) : undefined;
    const given = inputs as unknown as ObjectInputs;
    const isKnown = isObject && lookup !== undefined && lookup.outcome !== "unknown";
    const effect = isKnown ? effectOf(live, given, ownersOf(given.owner, old), appliedBefore(old)) : undefined;
    const isAdopted = !isObject && operation === "create" && foundExisting(observed, change.urn);
    const applied = isAdopted ? "adopt" : applicationOf(change, live, effect, moves.isKept(change));
    const known = source !== undefined ? "move" : applied;
    const word = known === "create" && lookup?.outcome === "unknown" ? UNCHECKED : known;
    const from = source === undefined ? change : { ...change, old: source };
    return [
      {
        ...planned(word, fieldsOf(word, from, live)),
        ...(isObject && id !== undefined && { inputs: given, live }),
        ...(effect !== undefined && { effect: word === "replace" && moves.isInPlace(change) ? "replace" : effect }),
      },
    ];
  });
  return (await Promise.all(resources)).flat().sort((a, b) => (a.shown.name < b.shown.name ? -1 : 1));
}

/**
 * What resources of a stack pass on to each other: by what their providers' `identify` says that they manage, before and after.
 */
function movesAmong(changes: readonly PlannedChange[], kind: AnyKind) {
  const providers = providersOf([kind]);
  const identify = (properties: Properties | undefined) => {
    const stub = properties?.[PROVIDER_PROPERTY] as string | undefined;
    const identity = stub && providers.get(stub)?.identify?.(properties as Properties);
    return identity && `${stub} ${identity}`;
  };
  const before = new Map<string, PlannedChange>();
  const after = new Map<string, PlannedChange>();
  for (const change of changes) {
    const [old, next] = [identify(change.old?.inputs), identify(change.inputs)];
    if (old !== undefined && next !== old) before.set(old, change);
    if (next !== undefined) after.set(next, change);
  }
  return {
    /** Whether what a resource had is another's by then, so that it is not deleted. */
    isKept(change: PlannedChange): boolean {
      const next = after.get(identify(change.old?.inputs) ?? "");
      return next !== undefined && next !== change;
    },
    /** What another resource has of that which this one will manage. */
    sourceOf(change: PlannedChange): PlannedChange["old"] {
      return before.get(identify(change.inputs) ?? "")?.old;
    },
    /** Whether a resource is replaced by one of the same thing, which must go first. */
    isInPlace: (change: PlannedChange): boolean => identify(change.old?.inputs) === identify(change.inputs),
  };
}

function fieldsOf(word: ResourcePlan["operation"], from: PlannedChange, live: LiveObject | undefined): FieldChange[] {
  const { inputs = {} } = from;
  if (word === "create" || word === UNCHECKED) return createdFields(inputs);
  if (word !== "adopt") return changedFields(from, live);
  return live === undefined ? createdFields(inputs) : adoptedFields(live, inputs.manifest as Manifest);
}

/** @param lookup of a Kubernetes object */
function deletionOf(
  { old }: PlannedChange,
  lookup: Lookup | undefined,
  { uid, operation }: Changing,
): ResourcePlan["operation"] {
  if (operation === "release") return "orphan";
  const outputs = old?.outputs ?? {};
  if (isRetained(outputs)) return "release";
  if (!isObjectOutputs(outputs)) return "delete";
  if (outputs.existing) {
    const { deletedWith } = withoutOwnReferences(outputs);
    return operation === "delete" && deletedWith !== undefined && deletedWith.uid === uid ? "delete" : "release";
  }
  if (!outputs.created) return "release";
  if (lookup?.outcome === "absent") return "delete";
  if (lookup?.outcome !== "found") return UNCHECKED;
  const live = lookup.object;
  const holder = ownerUidOf(live);
  const isStillOurs = holder === undefined ? live.metadata.uid === outputs.uid : holder === outputs.owner.uid;
  return isStillOurs && isDeletable(live) ? "delete" : "release";
}

/** @param keepsOld of a replacement, whether what it had is not deleted */
function applicationOf(
  { operation, old }: PlannedChange,
  live: LiveObject | undefined,
  effect: ApplyEffect | undefined,
  keepsOld: boolean,
): Exclude<StepAction, "delete"> {
  if (operation === "replace" && !keepsOld) return "replace";
  if (effect === undefined || effect === "wait") return operation === "update" ? "update" : "create";
  // One that only lost its label is no other's.
  if (effect === "adopt" && live?.metadata.uid === old?.outputs.uid) return "update";
  return effect;
}

import { RetryableError, TerminalError } from "../errors";
import type { CallContext } from "../provider";
import { type Applied, effectOf, isDisplaced, isGiven, ownersAllowed } from "./apply-effect";
import { FIELD_MANAGER, isApiError, isUnknownKind, type KubernetesClient, known } from "./client";
import { clientOf } from "./connection";
import { deleteObject, deleteUnmanaged, revokeRights, untilGone } from "./delete-object";
import { appliedManifest, driftOf, ignoredPaths } from "./ignored-fields";
import type { ObjectInputs, ObjectOutputs } from "./object-inputs";
import { nameable, overwrittenBy, refuseOutdated } from "./object-observation";
import { differsForGood, grantsRights, NAMESPACE, typeName } from "./object-types";
import { refuseOwnersElsewhere } from "./owner-namespace";
import { lastingOwner, withLastingOwner } from "./owner-references";
import {
  CREATED_ANNOTATION,
  describeConflict,
  OWNER_ANNOTATION,
  OWNER_UID_LABEL,
  ownedFieldsDigest,
  wasCreated,
} from "./ownership";
import { refuseProtectedNamespace } from "./protected-namespaces";
import { referenceTo } from "./termination";
import { unknownKind } from "./type-absence";
import type { LiveObject, Manifest } from "./types";

/**
 * Applies the object: an object that is found by a label, only in the labelled version; in an update that is held to a plan,
 * only in the compared version. What is in no state is new in most cases, and the API server tells when it is not: it is read
 * only then.
 */
export function applyObject(
  inputs: ObjectInputs,
  owners: string[],
  former: Applied | undefined,
  context: CallContext,
): Promise<ObjectOutputs> {
  const apply = (isNew: boolean) => applyAsRead(inputs, owners, former, context, isNew);
  const read = () => writeAsRead(() => apply(false));
  if (former !== undefined || inputs.existing || inputs.givenBy !== undefined) return read();
  return apply(true).catch((error: unknown) => {
    if (isApiError(error, 409) || isUnknownKind(error)) return read();
    throw error;
  });
}

/** How often an object that others change at the same time is read. */
const MAX_READS = 5;

/** Reads an object and writes it, and does so again when it has changed in between. */
export async function writeAsRead<T>(write: () => Promise<T>): Promise<T> {
  for (let read = 1; ; read++) {
    try {
      return await write();
    } catch (error) {
      if (!isApiError(error, 409) || read === MAX_READS) throw error;
    }
  }
}

/** Whether an apply is refused where the object has changed since it was read. */
function isOfVersion({ givenBy }: ObjectInputs, context: CallContext): boolean {
  return givenBy !== undefined || context?.hold !== undefined;
}

/**
 * Creates or updates the object.
 *
 * @param isNew whether it is created, if nothing has its name, and not looked for
 * @throws ApiError 409 when it has changed since it was read, or something has the name of what is created; TerminalError
 *   `Conflict` when an owner other than `owners` has it, `NamespaceProtected`; RetryableError `Gone` when it is to exist and
 *   does not, `PlanOutdated`
 */
async function applyAsRead(
  inputs: ObjectInputs,
  owners: string[],
  former: Applied | undefined,
  context: CallContext,
  isNew: boolean,
): Promise<ObjectOutputs> {
  const { manifest, owner, initial } = inputs;
  refuseProtected(manifest);
  const client = clientOf(context);
  const found = isNew ? undefined : await liveToUpdate(client, inputs, owners, former, context);
  if (found === undefined) await refuseOwnersElsewhere(client, manifest, owner);
  const live =
    found ??
    (initial && (await create(client, { ...inputs, manifest: initial.manifest }, initial.fieldManager, context)));
  const object =
    live === undefined
      ? await create(client, inputs, FIELD_MANAGER, context)
      : (await client.apply(withOwner(await lasting(client, inputs, live), live, wasCreated(live), context))).object;
  const drift = driftOf(inputs, object);
  return {
    manifest,
    owner,
    ...(inputs.existing && { existing: true }),
    ...(inputs.givenBy && { givenBy: inputs.givenBy }),
    ...(inputs.deletedWith && { deletedWith: inputs.deletedWith }),
    ...(inputs.awaitDeletion === false && { awaitDeletion: false }),
    uid: object.metadata.uid,
    resourceVersion: object.metadata.resourceVersion,
    created: wasCreated(object),
    fields: drift.length > 0 ? "" : ownedFieldsDigest(object, ignoredPaths(owner.ignoreFields, manifest)),
    ...(drift.length > 0 && { drift }),
    drifted: false,
  };
}

/** Kinds refuse these by their fields; none is accepted here, whatever the kind and the user. */
export function refuseProtected(manifest: Manifest): void {
  if (typeName(manifest) === NAMESPACE) refuseProtectedNamespace(manifest.metadata.name ?? "", "metadata.name");
}

/** The object that an apply updates; `undefined`, when nothing has its name any more, where the apply creates it. */
async function liveToUpdate(
  client: KubernetesClient,
  inputs: ObjectInputs,
  owners: string[],
  former: Applied | undefined,
  context: CallContext,
): Promise<LiveObject | undefined> {
  const { manifest, existing, givenBy, adopt } = inputs;
  const live = await known(client.find(manifest));
  if (existing && (live === undefined || live.metadata.deletionTimestamp)) {
    const state = live ? "being deleted" : "not there any more";
    throw new RetryableError("Gone", `${manifest.kind} ${manifest.metadata.name} is ${state}`);
  }
  if (live !== undefined && live.apiVersion !== manifest.apiVersion) {
    throw unknownKind(manifest, `it is served in ${live.apiVersion}: change the program of the kind to that version`);
  }
  const hold = context?.hold;
  if (hold !== undefined) {
    const known = hold.asObserved(inputs);
    const found = overwrittenBy(nameable(known, former) ? known : inputs, live, owners, former);
    refuseOutdated(hold, found, inputs, live, former);
  }
  if (live === undefined) return undefined;
  if (givenBy !== undefined && !isGiven(live, inputs)) {
    throw new RetryableError("Gone", `${live.kind} ${live.metadata.name} was released: its label ${givenBy} is gone`);
  }
  const effect = effectOf(live, inputs, owners, former);
  const conflict = describeConflict(live, inputs.owner, ownersAllowed(live, owners, former), adopt !== false);
  if (effect === "wait") {
    if (grantsRights(live) && conflict === undefined) await applyRights(client, inputs, live, context);
    await untilGone(client, live, context);
    return undefined;
  }
  if (conflict !== undefined) throw new TerminalError("Conflict", conflict, { object: referenceTo(live) });
  if (effect !== "replace") return live;
  if (isDisplaced(live, inputs)) {
    await deleteUnmanaged(client, live, context);
  } else {
    await deleteObject(client, live, context);
    await untilGone(client, live, context);
  }
  return undefined;
}

/** Creates the object. @throws ApiError 409 when something has its name by now */
async function create(
  client: KubernetesClient,
  given: ObjectInputs,
  fieldManager: string,
  context: CallContext,
): Promise<LiveObject> {
  const wanted = withOwner(await lasting(client, given, undefined), undefined, true, context);
  return client.applyNew(wanted, { fieldManager });
}

/** Inputs whose manifest has the owner with which a Pod outlives the stack's object. */
async function lasting(
  client: KubernetesClient,
  inputs: ObjectInputs,
  live: LiveObject | undefined,
): Promise<ObjectInputs> {
  const owner = await lastingOwner(client, inputs.manifest, live);
  return owner === undefined ? inputs : { ...inputs, manifest: withLastingOwner(inputs.manifest, owner) };
}

/** The manifest with the owner's label; bound to the UID of what was read, so that no successor is overwritten. */
export function withOwner(
  inputs: ObjectInputs,
  live: LiveObject | undefined,
  created: boolean,
  context: CallContext,
): Manifest {
  const { owner } = inputs;
  const { metadata, ...fields } = appliedManifest(inputs, live);
  return {
    ...fields,
    metadata: {
      ...metadata,
      ...(live !== undefined && { uid: live.metadata.uid }),
      ...(live !== undefined && isOfVersion(inputs, context) && { resourceVersion: live.metadata.resourceVersion }),
      labels: { ...metadata.labels, [OWNER_UID_LABEL]: owner.uid },
      annotations: {
        ...metadata.annotations,
        [OWNER_ANNOTATION]: owner.description,
        ...(created && { [CREATED_ANNOTATION]: "true" }),
      },
    },
  };
}

/** An object that is being deleted grants rights until it is gone: the wanted ones, or none if its role differs. */
async function applyRights(
  client: KubernetesClient,
  inputs: ObjectInputs,
  live: LiveObject,
  context: CallContext,
): Promise<void> {
  if (differsForGood(live, inputs.manifest)) await revokeRights(client, live, context);
  else await client.apply(withOwner(inputs, live, wasCreated(live), context));
}

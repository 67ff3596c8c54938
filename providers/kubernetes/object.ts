import { isDeepStrictEqual } from "node:util";
import { Output, secret } from "@pulumi/pulumi/output";
import type { CustomResourceOptions } from "@pulumi/pulumi/resource";
import { DynamicResource, defineProvider } from "../dynamic";
import { invalidProgram } from "../errors";
import type { CheckFailure, DiffResult, DynamicProvider, Properties } from "../provider";
import { runningProgram } from "../registration";
import { type DynamicResourceOptions, PROVIDER_PROPERTY } from "../resource-options";
import { applyObject } from "./apply-object";
import { known } from "./client";
import { clientOf, lookUp } from "./connection";
import { differsIn, isRecord, parsePath } from "./field-path";
import { driftOf, ignoredPaths } from "./ignored-fields";
import type { ManifestOf } from "./known-types";
import { refusingManaged } from "./managed-owner";
import type { ObjectInputs, ObjectOutputs } from "./object-inputs";
import { nameable, overwrittenBy } from "./object-observation";
import { grantsRights, groupOf, holdsData, isSecret } from "./object-types";
import { refuseOwnerElsewhere } from "./owner-namespace";
import { withoutOwnReferences } from "./owner-references";
import { isAsApplied, type Owner } from "./ownership";
import { observeRemoval, releaseObject, removeObject } from "./remove-object";
import type { Manifest, OwnerReference } from "./types";

/** The options of a resource. Its provider replaces, so that the object is deleted first and nothing with data is. */
export type ObjectOptions = DynamicResourceOptions & Pick<CustomResourceOptions, "replaceOnChanges">;

type TypedInputs<ApiVersion extends string, Kind extends string> = Omit<ObjectInputs, "manifest"> & {
  manifest: ManifestOf<ApiVersion, Kind>;
};

/**
 * One Kubernetes object, made and kept by server-side apply.
 *
 * An object that exists already is adopted: Kindstack's fields are put on it, everything else in it stays, and
 * deleting the resource takes those fields off again. Only what Kindstack created is deleted.
 */
export class KubernetesObject<
  const ApiVersion extends string = string,
  const Kind extends string = string,
> extends DynamicResource {
  declare readonly manifest: Output<Manifest>;
  declare readonly uid: Output<string>;
  declare readonly created: Output<boolean>;

  /**
   * @param options with `replaceOnChanges`, as the input of that name, but paths may begin with `manifest.`
   * @throws TerminalError `InvalidProgram` where a kind's program may not declare it
   */
  constructor(
    name: string,
    typed: TypedInputs<ApiVersion, Kind>,
    { replaceOnChanges, ...options }: ObjectOptions = {},
  ) {
    const inputs = typed as ObjectInputs;
    declareObject(name, inputs.manifest);
    const paths = replaceOnChanges?.map((path) => path.replace(/^manifest\./, ""));
    super(
      { module: "kubernetes", name: inputs.manifest.kind, stub: OBJECT_STUB },
      name,
      {
        ...inputs,
        manifest: withSecretValues(inputs.manifest),
        ...(inputs.initial && { initial: { ...inputs.initial, manifest: withSecretValues(inputs.initial.manifest) } }),
        ...(paths && { replaceOnChanges: [...(inputs.replaceOnChanges ?? []), ...paths] }),
        uid: undefined,
        resourceVersion: undefined,
        created: undefined,
        fields: undefined,
      },
      options,
    );
  }
}

const objects: DynamicProvider<ObjectInputs, ObjectOutputs> = {
  identify: ({ manifest }) => (typeof manifest?.metadata?.name === "string" ? identity(manifest) : undefined),

  async check(_olds, news) {
    const { manifest, owner } = news as { [Input in keyof ObjectInputs]?: Partial<ObjectInputs[Input]> };
    const required = {
      "manifest.apiVersion": manifest?.apiVersion,
      "manifest.kind": manifest?.kind,
      "manifest.metadata.name": manifest?.metadata?.name,
      "owner.uid": owner?.uid,
    };
    if (isRecord(manifest?.metadata) && owner?.description !== undefined) {
      refuseOwnerElsewhere(manifest as Manifest, owner as Owner);
    }
    const missing = Object.entries(required).filter(([, value]) => !value);
    const failures = missing.map(([property]) => ({ property, reason: "is required" }));
    const inputs = withoutOwnReferences(news as unknown as ObjectInputs);
    const failed = failures.length > 0 ? failures : checkReplaced(inputs);
    return { inputs: inputs as unknown as Properties, failures: failed };
  },

  async diff(_id, recorded, news): Promise<DiffResult> {
    const olds = withoutOwnReferences(recorded);
    // Unknown while a dependency is replaced first, in states where all inputs depend on it.
    if (typeof news.manifest !== "object") return { changes: true };
    if (identity(olds.manifest) !== identity(news.manifest)) return { changes: true, replaces: ["manifest"] };
    if (news.replaceOnChanges?.some((path) => differsIn(path, olds.manifest, news.manifest))) {
      return { changes: true, replaces: ["manifest"], deleteBeforeReplace: true };
    }
    return {
      changes:
        olds.drifted || !isDeepStrictEqual(olds.manifest, news.manifest) || !isDeepStrictEqual(olds.owner, news.owner),
    };
  },

  async create(inputs, context) {
    const outs = await applyObject(inputs, [inputs.owner.uid], undefined, context);
    return { id: identity(inputs.manifest), outs };
  },

  async read(id, recorded, context) {
    const outs = withoutOwnReferences(recorded);
    const live = await known(lookUp(clientOf(context), outs.manifest, context?.snapshot));
    const isEnding = live?.metadata.deletionTimestamp !== undefined;
    // An object that is being deleted counts as gone: it cannot be repaired, only created again. A RoleBinding grants rights until
    // its end: it stays in the state, so that the rights go when the program omits it.
    if (live === undefined || (isEnding && !grantsRights(live))) return {};
    const ignored = ignoredPaths(outs.owner.ignoreFields, outs.manifest);
    const drifted =
      isEnding || live.metadata.uid !== outs.uid || !isAsApplied(live, outs.fields, ignored, formerOf(recorded));
    const drift = drifted ? driftOf(outs, live) : [];
    const { drift: _, ...former } = recorded;
    return { id, props: { ...former, ...(drift.length > 0 && { drift }), drifted } };
  },

  async update(_id, olds, news, context) {
    const owners = [news.owner.uid, olds.owner.uid];
    return { outs: await applyObject(news, owners, withoutOwnReferences(olds), context) };
  },

  delete: (_id, outs, context) => removeObject(withoutOwnReferences(outs), context),

  release: (_id, outs, context) => releaseObject(withoutOwnReferences(outs), context),

  comparesInWrite: true,

  async observe(inputs, recorded, context) {
    const outs = recorded && withoutOwnReferences(recorded);
    if (inputs === undefined) return observeRemoval(outs as ObjectOutputs, context);
    const named = nameable(inputs, outs);
    const live = named && (await known(lookUp(clientOf(context), named.manifest, context?.snapshot)));
    return overwrittenBy(inputs, live, outs ? [inputs.owner.uid, outs.owner.uid] : [inputs.owner.uid], outs);
  },
};

export const { stub: OBJECT_STUB, provider } = defineProvider(
  "kindstack/providers/kubernetes/object",
  refusingManaged(objects),
);

function checkReplaced({ manifest, adopt, replaceOnChanges }: ObjectInputs): CheckFailure[] {
  const property = replaceOnChanges === undefined ? "adopt" : "replaceOnChanges";
  if (holdsData(manifest) && (adopt === "replace" || replaceOnChanges !== undefined)) {
    const reason = `a ${manifest.kind} holds data, and is not replaced. Make a second one, of another name`;
    return [{ property, reason }];
  }
  if (replaceOnChanges === undefined) return [];
  if (!Array.isArray(replaceOnChanges)) return [{ property, reason: "must be a list of fields" }];
  return replaceOnChanges
    .filter((path) => path !== "*" && (typeof path !== "string" || parsePath(path) === undefined))
    .map((path) => ({ property, reason: `${JSON.stringify(path)} must be a field, such as spec.selector, or *` }));
}

/** The owner references that a state has of releases before. */
function formerOf({ manifest, owner }: ObjectOutputs): OwnerReference[] {
  return (manifest.metadata.ownerReferences ?? []).filter(({ uid }) => uid === owner.uid);
}

/** The values of a Secret are encrypted in the state; its keys are not, so that previews can name them. */
function withSecretValues(manifest: Manifest): Manifest {
  if (!isSecret(manifest)) return manifest;
  const fields = ["data", "stringData"].filter((field) => manifest[field] !== undefined);
  return { ...manifest, ...Object.fromEntries(fields.map((field) => [field, secretValues(manifest[field])])) };
}

function secretValues(values: unknown): unknown {
  if (!isRecord(values) || Output.isInstance(values) || values instanceof Promise) return secret(values);
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, secret(value)]));
}

/** The id of an object in the state: another id means another object. */
function identity({ apiVersion, kind, metadata }: Manifest): string {
  return [groupOf(apiVersion), kind, metadata.namespace ?? "", metadata.name].join("/");
}

/** Whether a resource's outputs are those of a Kubernetes object, as an engine's events show them. */
export function isObjectOutputs(outputs: Properties): outputs is Properties & ObjectOutputs {
  const { [PROVIDER_PROPERTY]: stub, fields, manifest } = outputs as Partial<Properties & ObjectOutputs>;
  // A manifest that is a secret as a whole cannot be read.
  return stub === OBJECT_STUB && typeof fields === "string" && typeof manifest?.metadata?.name === "string";
}

export function objectsAmong(resources: readonly { outputs: Properties }[]): ObjectOutputs[] {
  return resources.flatMap(({ outputs }) => (isObjectOutputs(outputs) ? [outputs] : []));
}

/**
 * Notes that a resource of the running program describes an object. Outside of a kind's program, everything is allowed.
 *
 * @throws TerminalError `InvalidProgram` for a type that nothing would watch, and for an object that two resources would
 *   apply in turn
 */
export function declareObject(resource: string, { apiVersion, kind: type, metadata }: Manifest): void {
  const { objects } = runningProgram();
  if (objects === undefined) return;
  const { kind, owns, names } = objects;
  if (!owns.some((owned) => owned.apiVersion === apiVersion && owned.kind === type)) {
    const line = `{ apiVersion: ${JSON.stringify(apiVersion)}, kind: ${JSON.stringify(type)} }`;
    throw invalidProgram(
      `the resource ${JSON.stringify(resource)} is a ${type} of ${apiVersion}: add ${line} to owns of ${kind}`,
    );
  }
  const place = [metadata?.namespace, metadata?.name].filter(Boolean).join("/");
  const id = `${groupOf(apiVersion)}/${type}/${place}`;
  const other = names.get(id);
  if (other !== undefined) {
    const both = `${JSON.stringify(other)} and ${JSON.stringify(resource)}`;
    throw invalidProgram(`the resources ${both} are the same object, ${type} ${place}: declare it once`);
  }
  names.set(id, resource);
}

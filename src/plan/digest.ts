import { createHmac, createSecretKey, type KeyObject, randomBytes, scrypt } from "node:crypto";
import { promisify } from "node:util";
import { canonicalJson } from "../../providers/canonical-json";
import { withoutInternal } from "../../providers/dynamic";
import { providerVersions } from "../../providers/index";
import type { Manifest } from "../../providers/kubernetes/client";
import { MASKED, mapTexts } from "../../providers/literal";
import { withObserved } from "../../providers/observation";
import type { DeclaredResource } from "../../providers/registration";
import { PROVIDER_PROPERTY } from "../../providers/resource-options";
import { type AnyKind, kindName } from "../../stacks/contract/kind";
import type { ReferenceRecord, StackRecord } from "../../stacks/contract/object";
import type { PlannedChange } from "../automation/planned-changes";
import { declaredInTime, type Program } from "../automation/program";
import { passphraseOf, type StateProtection } from "../config";
import type { PlannedResource } from "./effects";
import type { PlanRequest, StackPlan } from "./plan";

/** What a plan depends on. What is not in here may change without outdating an approval. */
export interface PlanBasis
  extends Pick<StackPlan, "operation" | "changes" | "resources" | "untracked">,
    Pick<PlanRequest, "kind"> {
  /** Whose plan it is: by its name, so that an object that is not there yet has the same digest. */
  object: Pick<Manifest, "metadata"> & { spec?: unknown };
  /** The digest of the kind's program. */
  programDigest: string;
  /** Digests of what the writes would overwrite, by URN. */
  observed?: ReadonlyMap<string, string>;
  /** What the program has read, for secrets whose values a preview does not tell. */
  references: readonly ReferenceRecord[];
}

/** What an approval names, and what tells of each step whether it was approved. */
export interface PlanDigests {
  digest: string;
  /** The same for all objects of a kind with the same difference. Of a deletion, it is the object's own. */
  group: string;
  /** By the URN of what changes, or the UID of what is untracked. */
  steps: ReadonlyMap<string, string>;
  /** By URN, the digests that creations have while there is nothing in their place. */
  creations: ReadonlyMap<string, string>;
}

/**
 * Digests of a plan, which everybody may read. All are keyed, as secrets are in them: without the key, a value cannot be found by
 * trying. The secrets of plugins are in no preview. A plan that has any depends on the versions of what its object refers to.
 *
 * Another version of a program that declares the same has the same plan: what a plain program declares is in the plan as a whole.
 * In the SDK's runtime, code makes inputs of outputs that a preview does not know.
 */
export function planDigests(key: KeyObject, basis: PlanBasis): PlanDigests {
  const {
    kind,
    object,
    operation,
    programDigest,
    changes,
    resources,
    observed = new Map<string, string>(),
    untracked,
    references,
  } = basis;
  const digestOf = (value: unknown) => `sha256:${createHmac("sha256", key).update(canonicalJson(value)).digest("hex")}`;
  const { name = "", namespace = "", uid } = object.metadata;
  const identity = { kind: kindName(kind), namespace, name };
  const program = kind.capabilities.sdkRuntime ? programDigest : undefined;
  const versions = providerVersions(kind);
  const effects = new Map(resources.map((resource) => [resource.change.urn, resource]));
  const changing = changes
    .filter((change) => change.operation !== "same")
    .sort((a, b) => (a.urn < b.urn ? -1 : 1))
    .map((change) => {
      const stub = (change.inputs ?? change.old?.inputs)?.[PROVIDER_PROPERTY] as string | undefined;
      // A provider without a version is of the kind's own code.
      const provider = versions.get(stub ?? "") ?? programDigest;
      const contents = withoutUid({ ...contentsOf(change, effects.get(change.urn)), provider }, uid);
      return { change, contents, seen: observed.get(change.urn) };
    });
  const removed = [...untracked].sort((a, b) => (a.metadata.uid < b.metadata.uid ? -1 : 1));
  const steps = new Map([
    ...changing.map(({ change, contents, seen }) => [change.urn, digestOf({ ...identity, contents, seen })] as const),
    ...removed.map(({ metadata }) => [metadata.uid, digestOf({ ...identity, orphan: metadata.uid })] as const),
  ]);
  const unseen = changing.some(({ change }) => hidesSecrets(change)) ? { references } : {};
  const creations = new Map(
    changing
      .filter(({ change }) => change.operation === "create")
      .map(({ change: { urn }, contents }) => {
        const seen = withObserved(undefined, urn, "Create", null, {});
        return [urn, digestOf({ ...identity, contents: { ...contents, action: "create", fields: [] }, seen })] as const;
      }),
  );
  const plan = { operation, program, spec: object.spec, steps: [...steps.values()] };
  const digest = digestOf({ ...identity, ...plan, ...unseen });
  const isOwn = operation !== "update" || removed.length > 0;
  const differences = changing.map(({ contents }) => differenceOf(contents, template(name, namespace)));
  const shared = { kind: identity.kind, program, steps: differences.map(canonicalJson).sort(), ...unseen };
  const group = digestOf({ group: isOwn ? digest : shared });
  return { digest, group, steps, creations };
}

interface StepContents {
  action: string;
  operation: string;
  type: string;
  name: string;
  /** Fields with what they are and what they become; where there is nothing before, the inputs say it all. */
  fields: readonly { path: string }[];
  /** All that the program gives, or the state has of what goes. */
  inputs: Record<string, unknown>;
  hasSecrets: boolean;
  /** The version of what applies it. */
  provider: number | string;
}

function contentsOf(change: PlannedChange, effect: PlannedResource | undefined): Omit<StepContents, "provider"> {
  const { operation, type, name, inputs, old, secretInputs } = change;
  const action = effect?.shown.operation ?? operation;
  const fields = action === "create" ? [] : (effect?.shown.fields ?? []);
  return {
    action,
    operation,
    type,
    name,
    fields,
    inputs: withoutInternal(secretInputs?.() ?? inputs ?? old?.inputs ?? {}),
    hasSecrets: fields.some(({ before, after }) => before === MASKED || after === MASKED),
  };
}

/** Whether a change has a secret that no provider of ours was given. */
function hidesSecrets({ inputs, secretInputs }: PlannedChange): boolean {
  return secretInputs === undefined && JSON.stringify(inputs ?? {}).includes(JSON.stringify(MASKED));
}

/**
 * What a step has in common with the same step of other objects. The names of the object are left out where they name things:
 * a value that is another for each object is another difference.
 */
function differenceOf(contents: StepContents, templated: (value: unknown) => unknown): object {
  const { action, operation, type, name, fields, inputs, hasSecrets, provider } = contents;
  const { manifest, owner } = inputs as { manifest?: Partial<Manifest>; owner?: object };
  const named = {
    ...inputs,
    ...(owner && { owner: templated(owner) }),
    ...(manifest && { manifest: { ...manifest, metadata: templated(manifest.metadata) } }),
  };
  // Of an update, what stays is no part of the difference, but masked fields do not tell their values.
  const isWhole = operation !== "update" || hasSecrets;
  const step = { action, operation, type, name: templated(name), fields, provider };
  return { ...step, ...(isWhole && { inputs: named }) };
}

/** Replaces the names of an object in texts, where they are words. */
function template(name: string, namespace: string): (value: unknown) => unknown {
  const words = [name, namespace].filter((word) => word !== "").map((word) => word.replaceAll(".", "\\."));
  const pattern = new RegExp(`[{}]|(?<![A-Za-z0-9])(?:${words.join("|")})(?![A-Za-z0-9])`, "g");
  const replaced = (match: string) =>
    match === "{" || match === "}" ? match + match : match === name ? "{name}" : "{namespace}";
  return (value) => mapTexts(value, (text) => text.replace(pattern, replaced));
}

/** An object that is made again has the same plan. */
function withoutUid<T>(value: T, uid: string | undefined): T {
  return uid ? (mapTexts(value, (text) => text.replaceAll(uid, "{uid}")) as T) : value;
}

const KEY_BYTES = 32;
/** About a tenth of a second and 32 MiB: a digest does not help to guess the passphrase. */
const COST = { N: 2 ** 15, r: 8, p: 1, maxmem: 64 * 2 ** 20 };
const derive = promisify<string, string, number, object, Buffer>(scrypt);

/**
 * The key of the digests of plans, made when it is needed first. With a passphrase it is made of that: all replicas, and previews
 * elsewhere with the same passphrase, give the same digests.
 *
 * With a key service alone there is no secret to make it of. It is the process's own then: a restart, or another replica, gives
 * other digests, and what was approved before waits for another approval.
 */
export function planKey(protection: StateProtection): () => Promise<KeyObject> {
  let made: Promise<KeyObject> | undefined;
  const make = async () => {
    const secret = await passphraseOf(protection);
    if (secret === undefined) return createSecretKey(randomBytes(KEY_BYTES));
    return createSecretKey(await derive(secret, "kindstack plans", KEY_BYTES, COST));
  };
  return () => {
    made ??= make();
    return made;
  };
}

/** What the declarations of a kind's program are digested with. */
interface ProgramVersion {
  kind: AnyKind;
  programDigest: string;
  planKey(): Promise<KeyObject>;
}

/**
 * A digest of what a program declares and of the versions of the providers that apply it: an update with the same has nothing to
 * do. It is keyed, as a status tells it and there may be secrets among the inputs.
 *
 * @param programDigest the version of a provider that has none
 */
export async function declarationsDigest(
  { planKey, kind, programDigest }: ProgramVersion,
  declared: readonly DeclaredResource[],
): Promise<string> {
  const versions = providerVersions(kind);
  const versioned = declared.map((resource) => {
    const { [PROVIDER_PROPERTY]: stub } = (resource.inputs ?? {}) as { [PROVIDER_PROPERTY]?: string };
    return [resource, stub === undefined ? null : (versions.get(stub) ?? programDigest)];
  });
  const contents = canonicalJson([versioned, kind.capabilities.settings?.() ?? null]);
  return createHmac("sha256", await planKey())
    .update(`declarations ${contents}`)
    .digest("hex")
    .slice(0, 16);
}

/** Whether an object's program declares what was applied at the last update. @throws what the program throws */
export async function declaresTheSame(version: ProgramVersion, stack: StackRecord, program: Program): Promise<boolean> {
  const { sdkRuntime, outputs } = version.kind.capabilities;
  // Outputs of resources, which only an update tells, give fields of the status by code that may be new.
  if (stack.declarations === undefined || sdkRuntime || outputs !== undefined) return false;
  const declared = await declaredInTime(program, { timeoutMs: Number.POSITIVE_INFINITY });
  return (await declarationsDigest(version, declared)) === stack.declarations;
}

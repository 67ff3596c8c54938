import { isDeepStrictEqual } from "node:util";
import { Check, Errors } from "typebox/value";
import { canonicalJson } from "../../providers/canonical-json";
import { errorMessageOf, failureOf } from "../../providers/errors";
import { providerVersions } from "../../providers/index";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import { isSecret } from "../../providers/kubernetes/object-types";
import { MASKED, maskSecrets, unescapeReserved } from "../../providers/literal";
import type { DeclaredResource } from "../../providers/registration";
import { PROVIDER_PROPERTY } from "../../providers/resource-options";
import { shortened } from "../../providers/shortened";
import { parseLive } from "../../stacks/contract/declared";
import { type AnyKind, kindName, statusOf } from "../../stacks/contract/kind";
import { type KindObject, objectKey } from "../../stacks/contract/object";
import { runProgram } from "../../stacks/contract/run-program";
import { declaredInTime } from "../automation/program";
import { changedPaths } from "../plan/fields";
import { type ProgramInputs, programContext, readInputs, type View } from "../plan/plan";
import {
  DECLARATIONS_FORMAT,
  type Declarations,
  type Declared,
  declaredSchema,
  type Fleet,
  type PortableResource,
} from "./artefact";
import { fetchedViews } from "./fetched-view";
import { doubtsOn, refusalOf } from "./live";

type Outcome = Declared["outcome"];
const MAX_MESSAGE = 4_000;

/** A kind whose programs do not end for so many objects is run for no others: each takes a minute. */
const MAX_LATE = 3;

/**
 * Runs the programs of kinds for the objects of a fleet, each twice, and tells what they declare. Needs no right and no network.
 * Secrets have no values here: of a program that reads one, nothing is told.
 *
 * @param observe told for which object a program runs
 */
export async function runFleet(
  fleet: Fleet,
  kinds: readonly AnyKind[],
  observe: (what: string) => void,
): Promise<Declarations> {
  const result: Declarations = { format: DECLARATIONS_FORMAT, providers: {}, objects: [], notFetched: [] };
  for (const kind of kinds) {
    const fetched = fleet.kinds.find((one) => one.kind === kindName(kind));
    if (fetched === undefined) {
      result.notFetched.push(kindName(kind));
      continue;
    }
    for (const [stub, version] of providerVersions(kind)) result.providers[stub] = version ?? null;
    const viewOf = await fetchedViews(fleet, fetched, kind);
    const refusal = refusalOf(kind, fetched.stored);
    const doubtOf = doubtsOn(kind, fetched.alternatives as LiveObject[]);
    let late = 0;
    for (const object of fetched.objects as LiveObject[]) {
      const { name, namespace, uid, generation = 0 } = object.metadata;
      observe(`${kind.kind} ${objectKey(object.metadata)}`);
      const doubt = late < MAX_LATE ? await doubtOf(object) : NOT_RUN;
      const told = doubt === undefined ? await outcomeOf(kind, object, viewOf(object), () => late++) : unchecked(doubt);
      const outcome = fitting(refusal === undefined ? told : { type: "invalid", message: refusal });
      result.objects.push({ kind: kindName(kind), ...(namespace && { namespace }), name, uid, generation, outcome });
    }
  }
  return result;
}

async function outcomeOf(kind: AnyKind, object: LiveObject, view: View, onLate: () => void): Promise<Outcome> {
  if (kind.capabilities.sdkRuntime) return unchecked("its program needs the SDK's runtime, which runs with an engine");
  let parsed: KindObject;
  let refused: string[];
  try {
    ({ object: parsed, refused } = await parseLive(kind, object));
  } catch (error) {
    return { type: "invalid", message: errorMessageOf(error) };
  }
  let inputs: ProgramInputs;
  try {
    inputs = await readInputs(view, kind, parsed);
  } catch (error) {
    return unchecked(`what its program reads is unknown: ${errorMessageOf(error)}`);
  }
  if ([...inputs.owned, ...inputs.watched].some(isSecret)) return unchecked(SECRET_READ);
  try {
    const [first, second] = [await declare(kind, parsed, inputs), await declare(kind, parsed, inputs)];
    if (first.readsSecret) return unchecked(SECRET_READ);
    const difference = differenceOf(first.resources, second.resources);
    if (difference !== undefined) return unchecked(difference);
    const spec = !isDeepStrictEqual(parsed.spec, object.spec) && { spec: parsed.spec as Record<string, unknown> };
    const why = refused.length > 0 && { refused: shortened(refused.join("; "), MAX_MESSAGE) };
    return { type: "declared", resources: first.resources, ...spec, ...why };
  } catch (error) {
    const { reason, message } = failureOf(error);
    if (reason === "ProgramTimedOut") onLate();
    return { type: "failed", message };
  }
}

const NOT_RUN = `its program was not run: it has not ended in time for ${MAX_LATE} others`;
const SECRET_READ = "its program reads a Secret, whose values are not fetched";

function unchecked(message: string): Outcome {
  return { type: "unchecked", message };
}

async function declare(kind: AnyKind, object: KindObject, inputs: ProgramInputs) {
  let readsSecret = false;
  const referenced = new Map(inputs.referenced);
  referenced.get = (alias) => {
    const found = inputs.referenced.get(alias);
    readsSecret ||= found !== undefined && isSecret(found);
    return found;
  };
  const recorded = statusOf(object as unknown as LiveObject).stack?.resources?.map(({ id }) => id) ?? [];
  // Neither of two runs sees what the other one did to what it was given.
  const own = structuredClone({ object, inputs: { ...inputs, referenced: new Map() } });
  const context = programContext(kind, own.object, { ...own.inputs, referenced }, recorded);
  const declared = await declaredInTime(() => runProgram(kind, own.object, context), {
    timeoutMs: Number.POSITIVE_INFINITY,
  });
  return { resources: declared.map(portable), readsSecret };
}

/** A declaration as data, without the values of secrets, and without marks of what the engine must take literally. */
function portable({ inputs, ...resource }: DeclaredResource): PortableResource {
  if (inputs === undefined) return JSON.parse(JSON.stringify(resource)) as PortableResource;
  const { [PROVIDER_PROPERTY]: provider, ...given } = JSON.parse(JSON.stringify(inputs)) as Record<string, unknown>;
  const masked = maskSecrets(given);
  const plain = unescapeReserved(masked);
  const { manifest } = plain as { manifest?: Manifest };
  const isMasked = canonicalJson(masked) !== canonicalJson(given) || (manifest !== undefined && isSecret(manifest));
  return JSON.parse(
    JSON.stringify({ ...resource, provider, inputs: withoutData(plain), ...(isMasked && { secret: true }) }),
  ) as PortableResource;
}

/** A program may write a Secret whose values it has not marked. */
function withoutData(inputs: Record<string, unknown>): Record<string, unknown> {
  const { manifest } = inputs as { manifest?: Manifest };
  if (manifest === undefined || !isSecret(manifest)) return inputs;
  const { initial: _, ...others } = inputs;
  const hidden = ["data", "stringData"].filter((field) => manifest[field] !== undefined);
  return { ...others, manifest: { ...manifest, ...Object.fromEntries(hidden.map((field) => [field, MASKED])) } };
}

function differenceOf(first: readonly PortableResource[], second: readonly PortableResource[]): string | undefined {
  if (canonicalJson(first) === canonicalJson(second)) return undefined;
  const byName = (all: readonly PortableResource[]) => Object.fromEntries(all.map((one) => [one.name, one]));
  const [path = "the order of its resources"] = changedPaths(byName(first), byName(second));
  return `its program declares something else each time it runs: ${path}`;
}

/** A result of another form than who previews it takes is no result. */
function fitting(outcome: Outcome): Outcome {
  if (outcome.type !== "declared") return { ...outcome, message: shortened(outcome.message, MAX_MESSAGE) };
  const schema = declaredSchema.properties.outcome;
  if (Check(schema, outcome)) return outcome;
  const deepest = [...Errors(schema, outcome)].sort((a, b) => b.instancePath.length - a.instancePath.length)[0];
  const where = deepest === undefined ? "" : `: ${deepest.instancePath} ${deepest.message}`;
  return unchecked(shortened(`its program declares what is previewed only where it runs${where}`, MAX_MESSAGE));
}

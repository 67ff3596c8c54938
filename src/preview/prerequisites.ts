import { errorMessageOf } from "../../providers/errors";
import { isApiError, type Manifest } from "../../providers/kubernetes/client";
import { isRecord } from "../../providers/kubernetes/field-path";
import { groupOf, typeName } from "../../providers/kubernetes/object-types";
import type { ManifestDocument, SourcedDocument } from "../../stacks/contract/parse-manifests";
import type { ClusterView } from "./cluster-view";
import type { Planned } from "./conflicts";
import type { Report } from "./report";

/** Namespaces and types that exist only once everything is applied. */
export interface Made {
  namespaces: ReadonlySet<string>;
  /** As {@link typeName} has them. */
  types: ReadonlySet<string>;
}

type Definition = { group?: string; names?: { kind?: string }; versions?: { name?: string }[] };

/** What the planned resources and the other documents of the same files make. */
export function madeBy(all: readonly Planned[], documents: readonly ManifestDocument[]): Made {
  const created = all.flatMap(({ resources }) => resources.filter(({ effect }) => effect === "create"));
  const manifests = [...created.flatMap(({ inputs }) => (inputs ? [inputs.manifest] : [])), ...documents];
  const made = { namespaces: new Set<string>(), types: new Set<string>() };
  for (const { apiVersion, kind, metadata, spec } of manifests) {
    const name = isRecord(metadata) ? metadata.name : undefined;
    if (apiVersion === "v1" && kind === "Namespace" && typeof name === "string") made.namespaces.add(name);
    if (kind !== "CustomResourceDefinition" || !isRecord(spec)) continue;
    const { group, names, versions } = spec as Definition;
    if (!Array.isArray(versions)) continue;
    for (const version of versions) made.types.add(`${group}/${version?.name}/${names?.kind}`);
  }
  return made;
}

/**
 * Looks for the types and the namespaces that objects and their new resources need, where no dry run has told of them: without
 * them, nothing can be applied.
 */
export async function checkPrerequisites(all: readonly Planned[], cluster: ClusterView, made: Made): Promise<void> {
  if (cluster.unreachable !== undefined) return; // which each object says
  await Promise.all(
    all.map(async (planned) => {
      const { applied, isNew = false, plan, resources } = planned;
      if (applied !== undefined && plan.validatedBy !== "server") {
        const problems = [await typeProblem(cluster, applied, made)];
        if (isNew) problems.push(await namespaceProblem(cluster, applied, made));
        for (const problem of problems) {
          if (problem?.outcome === "made") plan.notValidated = problem.message;
          else noteProblem(planned, problem);
        }
      }
      for (const { inputs, shown } of resources) {
        if (inputs === undefined || shown.operation !== "create") continue;
        const problem = await namespaceProblem(cluster, inputs.manifest, made);
        if (problem?.outcome === "made") shown.notChecked = problem.message;
        else noteProblem(planned, problem);
      }
    }),
  );
}

/** Why what an object needs is not there. What the same change makes is no problem, but keeps dry runs from being sent. */
interface Problem {
  outcome: "missing" | "made" | "unknown";
  message: string;
}

function noteProblem({ plan, unknown }: Planned, problem: Problem | undefined): void {
  if (problem === undefined) return;
  const { outcome, message } = problem;
  const texts = outcome === "missing" ? plan.errors : unknown;
  if (!texts.includes(message)) texts.push(message);
  if (outcome === "missing") plan.action = "failed";
}

async function namespaceProblem(
  cluster: ClusterView,
  { metadata: { namespace } }: Manifest,
  made: Made,
): Promise<Problem | undefined> {
  if (namespace === undefined) return undefined;
  const lookup = await cluster.look({ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
  if (lookup.outcome === "unknown") {
    const why = errorMessageOf(lookup.error);
    return { outcome: "unknown", message: `the namespace ${namespace} could not be looked up: ${why}` };
  }
  if (lookup.outcome === "found") {
    if (lookup.object.metadata.deletionTimestamp === undefined) return undefined;
    return { outcome: "missing", message: `the namespace ${namespace} is being deleted: nothing can be created in it` };
  }
  return made.namespaces.has(namespace)
    ? { outcome: "made", message: `its namespace ${namespace} is made by the same change` }
    : { outcome: "missing", message: `the namespace ${namespace} does not exist` };
}

async function typeProblem(cluster: ClusterView, manifest: Manifest, made: Made): Promise<Problem | undefined> {
  try {
    await cluster.pluralOf(manifest);
    return undefined;
  } catch (error) {
    const message = errorMessageOf(error);
    if (!isApiError(error, 404)) return { outcome: "unknown", message };
    return made.types.has(typeName(manifest))
      ? { outcome: "made", message: "the definition of its type is made by the same change" }
      : { outcome: "missing", message };
  }
}

/** A document of a kind that is not known here, in a group of kinds that are. */
export interface UnknownDocument extends SourcedDocument {
  /** The kinds of the group. */
  siblings: readonly string[];
}

/** What the cluster tells of {@link UnknownDocument}s. */
interface Typed {
  problems: Report["problems"];
  unknown: string[];
  /** How many are of types that others define. */
  foreign: number;
}

/** Another operator may have a kind of the same group; anything else is a kind that is misspelt. */
export async function typesOf(cluster: ClusterView, documents: readonly UnknownDocument[], made: Made): Promise<Typed> {
  const typed: Typed = { problems: [], unknown: [], foreign: 0 };
  for (const { manifest, file, siblings } of documents) {
    const problem = await typeProblem(cluster, manifest as ManifestDocument & Manifest, made);
    const { apiVersion, kind } = manifest;
    if (problem === undefined || problem.outcome === "made") typed.foreign++;
    else if (problem.outcome === "unknown") typed.unknown.push(`${file}: ${kind} of ${apiVersion}: ${problem.message}`);
    else {
      const message = `there is no kind ${kind} in the group ${groupOf(apiVersion)}, which has ${siblings.join(", ")}`;
      typed.problems.push({ file, message });
    }
  }
  return typed;
}

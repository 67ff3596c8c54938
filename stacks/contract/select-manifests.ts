import Type from "typebox";
import { Compile } from "typebox/compile";
import type { Manifest } from "../../providers/kubernetes/client";
import { type AnyKind, kindName } from "./kind";
import { kindOf } from "./kind-name";
import { objectKey } from "./object";
import type { ManifestDocument, ManifestProblem, SourcedDocument } from "./parse-manifests";

/** An object of a kind as a file has it, in the namespace that it will be in. */
export interface DeclaredManifest {
  kind: AnyKind;
  manifest: Manifest & { metadata: { name: string } };
  file: string;
}

/** The objects of known kinds among documents. */
export interface ManifestSelection {
  declared: DeclaredManifest[];
  problems: ManifestProblem[];
  /** How many documents are of other kinds. */
  ignored: number;
}

const texts = Type.Optional(Type.Record(Type.String(), Type.String()));
const metadataValidator = Compile(
  Type.Object({
    name: Type.String({ minLength: 1 }),
    namespace: Type.Optional(Type.String()),
    labels: texts,
    annotations: texts,
  }),
);

/**
 * Picks the objects of known kinds out of documents. All who read files go by this, so that they agree about them; what is
 * of another kind is passed over, whatever it lacks.
 *
 * @param namespace for namespaced objects that name none
 */
export function selectDeclared(
  kinds: readonly AnyKind[],
  namespace: string,
  objects: readonly SourcedDocument[],
): ManifestSelection {
  const selection: ManifestSelection = { declared: [], problems: [], ignored: 0 };
  const files = new Map<string, string>();
  for (const { manifest: document, file } of objects) {
    const kind = kindOf(kinds, document);
    if (kind === undefined) {
      selection.ignored++;
      continue;
    }
    const metadata = metadataOf(document);
    const problem = problemOf(metadata);
    if (problem !== undefined) {
      selection.problems.push({ file, message: `${kind.kind}: ${problem}` });
      continue;
    }
    const { namespace: written, ...others } = metadata as DeclaredManifest["manifest"]["metadata"];
    const placed = kind.scope === "Namespaced" ? { namespace: written || namespace, ...others } : others;
    const declared = { kind, manifest: { ...document, metadata: placed }, file };
    const id = identityOf(declared);
    const first = files.get(id);
    if (first === undefined) selection.declared.push(declared);
    else selection.problems.push({ file, message: `${id} is in ${first === file ? "it" : first} already` });
    files.set(id, first ?? file);
  }
  return selection;
}

/** `postgreswriters.demo.yash.com/default/sample-student` */
export function identityOf({ kind, manifest }: Pick<DeclaredManifest, "kind" | "manifest">): string {
  return `${kindName(kind)}/${objectKey(manifest.metadata)}`;
}

/** As for the API server, a field without a value is not there. */
function metadataOf({ metadata }: ManifestDocument): unknown {
  if (typeof metadata !== "object" || metadata === null) return metadata ?? undefined;
  return Object.fromEntries(Object.entries(metadata).filter(([, value]) => value !== null));
}

function problemOf(metadata: unknown): string | undefined {
  if (metadata === undefined) return "metadata: must be given";
  const { name, generateName } = metadata as { name?: unknown; generateName?: unknown };
  if (name === undefined && generateName !== undefined) {
    return "metadata.name: must be given; what the API server makes of generateName is not known before";
  }
  const [error] = metadataValidator.Errors(metadata);
  if (error === undefined) return undefined;
  const path = ["metadata", ...error.instancePath.split("/").slice(1)];
  if (error.keyword === "required") return `${[...path, error.params.requiredProperties[0]].join(".")}: must be given`;
  return `${path.join(".")}: ${error.message}`;
}

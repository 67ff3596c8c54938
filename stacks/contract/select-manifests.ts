import Type from "typebox";
import { Compile } from "typebox/compile";
import { Pointer } from "typebox/value";
import type { Manifest } from "../../providers/kubernetes/client";
import { isRecord, nameSegment } from "../../providers/kubernetes/field-path";
import { groupOf } from "../../providers/kubernetes/object-types";
import { withoutNulls } from "./declared";
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

/** An object of a kind that the API server would refuse for its metadata. */
export interface RefusedManifest extends Pick<DeclaredManifest, "kind" | "file"> {
  apiVersion: string;
  metadata: { name: string; namespace?: string };
  message: string;
}

/** The objects of known kinds among documents. */
interface ManifestSelection {
  declared: DeclaredManifest[];
  refused: RefusedManifest[];
  /** Documents that do not tell which object they are. */
  unnamed: ManifestProblem[];
  /** Objects that another document has already. */
  repeated: ManifestProblem[];
  /** Documents of a kind's group, in which these kinds have no such kind. */
  unknown: SourcedDocument[];
  /** How many documents are of other groups. */
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
 * Picks the objects of known kinds out of documents; all readers of files use this one reading. Objects of other kinds are
 * skipped, whatever they lack.
 *
 * @param namespace for namespaced objects that name none
 */
export function selectDeclared(
  kinds: readonly AnyKind[],
  namespace: string,
  objects: readonly SourcedDocument[],
): ManifestSelection {
  const selection: ManifestSelection = {
    ...{ declared: [], refused: [], unnamed: [], repeated: [], unknown: [], ignored: 0 },
  };
  const files = new Map<string, string>();
  for (const { manifest: document, file } of objects) {
    const kind = kindOf(kinds, document);
    if (kind === undefined) {
      if (kinds.some(({ group }) => group === groupOf(document.apiVersion)))
        selection.unknown.push({ manifest: document, file });
      else selection.ignored++;
      continue;
    }
    const metadata = metadataOf(document);
    const named = namedBy(metadata);
    const message = problemOf(metadata);
    if (named === undefined) {
      selection.unnamed.push({ file, message: `${kind.kind}: ${message}` });
      continue;
    }
    const { namespace: written, ...others } = metadata as DeclaredManifest["manifest"]["metadata"];
    const inNamespace = kind.scope === "Namespaced" ? { namespace: written || namespace } : {};
    const manifest = { ...withoutNulls(kind, document), metadata: { ...inNamespace, ...others } };
    const id = identityOf({ kind, manifest });
    const first = files.get(id);
    if (first !== undefined)
      selection.repeated.push({ file, message: `${id} is in ${first === file ? "it" : first} already` });
    else if (message === undefined) selection.declared.push({ kind, manifest, file });
    else {
      const { apiVersion } = document;
      selection.refused.push({ kind, file, apiVersion, metadata: { ...inNamespace, name: named.name }, message });
    }
    files.set(id, first ?? file);
  }
  return selection;
}

/** `postgreswriters.demo.yash.com/default/sample-student` */
export function identityOf({ kind, manifest }: Pick<DeclaredManifest, "kind" | "manifest">): string {
  return `${kindName(kind)}/${objectKey(manifest.metadata)}`;
}

/** As for the API server, a field without a value is not there, and a label or an annotation without one is empty. */
function metadataOf({ metadata }: ManifestDocument): unknown {
  if (!isRecord(metadata)) return metadata ?? undefined;
  const given = Object.entries(metadata).filter(([, value]) => value !== null);
  return Object.fromEntries(
    given.map(([field, value]) => [field, TEXTS.includes(field) ? withEmptyTexts(value) : value]),
  );
}

const TEXTS = ["labels", "annotations"];

function withEmptyTexts(texts: unknown): unknown {
  if (!isRecord(texts)) return texts;
  return Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, text ?? ""]));
}

function namedBy(metadata: unknown): { name: string } | undefined {
  const { name, namespace } = (metadata ?? {}) as { name?: unknown; namespace?: unknown };
  const isPlaced = namespace === undefined || typeof namespace === "string";
  return typeof name === "string" && name !== "" && isPlaced ? { name } : undefined;
}

function problemOf(metadata: unknown): string | undefined {
  if (metadata === undefined) return "metadata: must be given";
  const { name, generateName } = metadata as { name?: unknown; generateName?: unknown };
  if (name === undefined && generateName !== undefined) {
    return "metadata.name: must be given; what the API server makes of generateName is not known before";
  }
  const [error] = metadataValidator.Errors(metadata);
  if (error === undefined) return undefined;
  const steps = Pointer.Indices(error.instancePath);
  if (error.keyword === "required") steps.push(String(error.params.requiredProperties[0]));
  const path = ["metadata", ...steps].map((step, index) => nameSegment(step, index === 0)).join("");
  return `${path}: ${error.keyword === "required" ? "must be given" : error.message}`;
}

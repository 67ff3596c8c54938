import { FIELD_MANAGER, type LiveObject, type Manifest } from "../../providers/kubernetes/client";
import { readJson } from "../text/json";

const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

type Texts = Readonly<Record<string, string>>;

/**
 * The metadata that an object has after its manifest is applied: labels and annotations of the live object stay, unless an
 * apply had set them and the manifest no longer has them.
 */
export function appliedMetadata<T extends Manifest["metadata"]>(written: T, live: LiveObject | undefined): T {
  if (live === undefined) return written;
  const labels = merged("labels", written.labels, live);
  const annotations = merged("annotations", written.annotations, live);
  return {
    ...written,
    ...(Object.keys(labels).length > 0 && { labels }),
    ...(Object.keys(annotations).length > 0 && { annotations }),
  };
}

function merged(field: "labels" | "annotations", written: Texts = {}, live: LiveObject): Texts {
  const dropped = appliedKeys(field, live);
  const kept = Object.entries(live.metadata[field] ?? {}).filter(([key]) => !dropped.has(key));
  return { ...Object.fromEntries(kept), ...written };
}

/** The keys that an apply owns: by kubectl's annotation, or by the managed fields of a server-side apply. */
function appliedKeys(field: "labels" | "annotations", { metadata }: LiveObject): ReadonlySet<string> {
  const applies = (metadata.managedFields ?? []).filter(
    ({ operation, manager, subresource }) => operation === "Apply" && manager !== FIELD_MANAGER && !subresource,
  );
  // Who applies the files sets the spec, too. Who applies annotations alone is another.
  const ofFiles = applies.filter(({ fieldsV1 }) => fieldsV1?.["f:spec"] !== undefined);
  const isByFiles = ofFiles.length > 0 || metadata.annotations?.[LAST_APPLIED] !== undefined;
  const owned = (isByFiles ? ofFiles : applies).flatMap(({ fieldsV1 }) => {
    const fields = (fieldsV1?.["f:metadata"] as Record<string, object> | undefined)?.[`f:${field}`] ?? {};
    return Object.keys(fields).map((key) => key.replace(/^f:/, ""));
  });
  return new Set([
    ...owned,
    ...Object.keys(metadataOf(metadata.annotations?.[LAST_APPLIED])[field] ?? {}),
    LAST_APPLIED,
  ]);
}

/** The metadata in kubectl's annotation, which is a user's to write. */
function metadataOf(text = "{}"): Partial<Record<"labels" | "annotations", object | null>> {
  return (readJson(text) as Partial<Manifest> | undefined | null)?.metadata ?? {};
}

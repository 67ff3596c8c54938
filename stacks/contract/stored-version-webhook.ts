import { isDeepStrictEqual } from "node:util";
import { isApiError } from "../../providers/kubernetes/api-server";
import type { KubernetesClient, Manifest } from "../../providers/kubernetes/client";
import { groupVersionPath } from "../../providers/kubernetes/resource-types";
import type { AdmissionRequest, AdmissionWebhook, Decision } from "./admission";
import { type AnyKind, kindApiVersion } from "./kind";

/*
 * The API server judges an object by the schema and the rules of the version that a request is in, and converts it afterwards:
 * what the stored version demands is bypassed through an older one. Rules differ between the API server's CEL and any other,
 * so the API server itself is asked, by a dry run of the same change in the stored version.
 */

const NAME = "versions.objects.kindstack.dev";

/** What refuses in another version what the stored one refuses; none where no kind has several versions. */
export function storedVersionWebhooks(kinds: readonly AnyKind[]): AdmissionWebhook[] {
  const several = kinds.filter(({ capabilities: { versions = [] } }) => versions.length > 0);
  if (several.length === 0) return [];
  const stored = several.map((kind) => `'${kindApiVersion(kind)}/${kind.plural}'`);
  const requested = ["group", "version", "resource"].map((field) => `request.requestResource.${field}`);
  return [
    {
      name: NAME,
      type: "validating",
      // An object is sent here in the stored version, whichever the request is in.
      rules: several.map(({ group, version, plural, scope }) => ({
        apiGroups: [group],
        apiVersions: [version],
        operations: ["CREATE", "UPDATE"],
        resources: [plural, `${plural}/scale`],
        scope,
      })),
      failurePolicy: "Fail",
      matchConditions: [
        { name: "another-version", expression: `!([${requested.join(", ")}].join('/') in [${stored.join(", ")}])` },
      ],
      timeoutSeconds: 10,
      sideEffects: "None",
      review: async (request, { client }) => {
        const { group, name } = request.resource;
        const kind = several.find((one) => one.group === group && one.plural === name);
        return kind === undefined ? { allowed: true } : reviewChange(kind, request, client);
      },
    },
  ];
}

async function reviewChange(
  kind: AnyKind,
  request: AdmissionRequest,
  client: Pick<KubernetesClient, "json">,
): Promise<Decision> {
  const { object, oldObject, namespace } = request;
  // What was allowed once may stay, so that an object whose rules have become stricter can end.
  if (object === undefined || isDeepStrictEqual(object.spec, oldObject?.spec)) return { allowed: true };
  const place = namespace === "" ? "" : `/namespaces/${encodeURIComponent(namespace)}`;
  const path = `${groupVersionPath(kindApiVersion(kind))}${place}/${kind.plural}`;
  const query = { dryRun: "All", fieldManager: NAME };
  try {
    if (oldObject === undefined) await client.json("POST", path, { query, body: created(kind, object) });
    else {
      const body = changed(kind, object, oldObject);
      const contentType = "application/json-patch+json";
      await client.json("PATCH", `${path}/${encodeURIComponent(request.name)}`, { query, body, contentType });
    }
  } catch (error) {
    if (isApiError(error, 422)) return { allowed: false, code: 422, message: error.message };
    // There is such an object, or it has changed: the API server finds that as well, and asks again.
    if (!isApiError(error, 409)) throw error;
  }
  return { allowed: true };
}

function created(kind: AnyKind, { metadata, spec }: Manifest): Manifest {
  const { name, generateName, namespace, labels, annotations } = metadata;
  const kept = Object.entries({ name, generateName, namespace, labels, annotations }).filter(([, value]) => value);
  return { apiVersion: kindApiVersion(kind), kind: kind.kind, metadata: Object.fromEntries(kept), spec } as Manifest;
}

function changed(kind: AnyKind, { kind: type, spec }: Manifest, { metadata }: Manifest): object[] {
  const isScale = type === "Scale" && kind.kind !== "Scale";
  const scaled = kind.capabilities.scale?.specReplicasPath.split(".").slice(1);
  return [
    { op: "add", path: "/metadata/resourceVersion", value: metadata.resourceVersion },
    ...(isScale && scaled !== undefined
      ? [{ op: "add", path: `/${scaled.join("/")}`, value: (spec as { replicas?: number }).replicas ?? 0 }]
      : [{ op: "add", path: "/spec", value: spec }]),
  ];
}

import { ApiError, type ApiServer, isApiError } from "./api-server";
import { groupOf } from "./object-types";
import type { ObjectType } from "./types";

/*
 * A type that no version of its group serves may have objects all the same: they stay in etcd while their
 * CustomResourceDefinition does. Discovery alone proves nothing.
 */

const DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/** Finding out whether there can be objects of a type takes this right. */
export const DEFINITIONS_RULE = {
  apiGroups: ["apiextensions.k8s.io"],
  resources: ["customresourcedefinitions"],
  verbs: ["get", "list"],
};

interface Definition {
  spec: { names: { kind: string }; versions: { name: string; served: boolean }[] };
}

/** The error about a type that is not served; all that needs the type fails alike. @param why what is known of it */
export function unknownKind({ apiVersion, kind }: ObjectType, why = "is its CRD installed?"): ApiError {
  const error = new ApiError(404, "UnknownKind", `the API server does not serve ${kind} in ${apiVersion}: ${why}`);
  error.dependency = `type ${apiVersion}/${kind}`;
  return error;
}

/** The versions of a group that the API server serves, the preferred one first; `[]` when it does not serve the group. */
export async function servedVersions(server: Pick<ApiServer, "json">, group: string): Promise<string[]> {
  type Group = { name: string; versions: { groupVersion: string }[]; preferredVersion?: { groupVersion: string } };
  const list = await server.json<{ kind?: string; groups?: Group[] }>("GET", "/apis");
  if (list.kind !== "APIGroupList" || !list.groups) {
    throw new ApiError(0, "Unreachable", "the API server does not tell which groups it serves");
  }
  const found = list.groups.find(({ name }) => name === group);
  const preferred = found?.preferredVersion?.groupVersion;
  const all = found?.versions.map(({ groupVersion }) => groupVersion) ?? [];
  return all.sort((a, b) => Number(b === preferred) - Number(a === preferred));
}

/**
 * Makes sure that no objects of an unserved type can exist: the CustomResourceDefinition of the type is deleted, or its whole
 * group is gone.
 *
 * @param versions those in which the group is served
 * @throws ApiError `UnknownKind` when objects can exist; other errors when the API server does not tell
 */
export async function requireNoObjects(
  server: Pick<ApiServer, "json">,
  type: ObjectType,
  versions: readonly string[],
): Promise<void> {
  const group = groupOf(type.apiVersion);
  if (group === "") throw unknownKind(type);
  const definitions = await definitionsOf(server, group).catch((error: unknown) => {
    if (isApiError(error, 401, 403)) throw unknownKind(type, `whether its CRD exists cannot be read: ${error.message}`);
    throw error;
  });
  const own = definitions.find(({ definition }) => definition.spec.names.kind === type.kind);
  if (own !== undefined) {
    const served = own.definition.spec.versions.filter(({ served }) => served).map(({ name }) => name);
    const state =
      served.length > 0
        ? `serves ${served.join(", ")}, which discovery does not show`
        : "serves no version: set served to true for one of its spec.versions";
    throw unknownKind(type, `its CRD ${own.name} exists and ${state}`);
  }
  const defined = new Set(
    definitions.flatMap(({ definition }) => definition.spec.versions.map(({ name }) => `${group}/${name}`)),
  );
  // What serves the rest of the group, such as the API server itself or an extension of it, may still have such objects.
  if (versions.every((version) => defined.has(version))) return;
  throw unknownKind(
    type,
    `the group ${group} is served without it; upgrade the program of the kind, or serve it again`,
  );
}

async function definitionsOf(server: Pick<ApiServer, "json">, group: string) {
  const { items } = await server.json<{ items: { metadata: { name: string } }[] | null }>("GET", DEFINITIONS, {
    accept: METADATA_LIST,
  });
  const names = (items ?? []).map(({ metadata }) => metadata.name);
  const ofGroup = names.filter((name) => name.slice(name.indexOf(".") + 1) === group);
  return Promise.all(
    ofGroup.map(async (name) => ({ name, definition: await server.json<Definition>("GET", `${DEFINITIONS}/${name}`) })),
  );
}

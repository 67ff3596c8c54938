import type { KubernetesClient } from "./client";

/** A user as the API server's reviews tell and ask of one. */
export interface UserInfo {
  username?: string;
  uid?: string;
  groups?: readonly string[];
  extra?: Readonly<Record<string, readonly string[]>>;
}

/** What is done to which objects; without a namespace, in all of them. */
export interface ResourceAttributes {
  verb: string;
  version: string;
  resource: string;
  group?: string;
  namespace?: string;
  name?: string;
  subresource?: string;
}

/** A request to authorize: for a resource, or for a non-resource path. */
type AccessAttributes =
  | { resourceAttributes: ResourceAttributes }
  | { nonResourceAttributes: { verb: string; path: string } };

/** The user of a bearer token; `undefined` when it is not valid. @throws ApiError when the API server gives no answer */
export async function reviewToken(
  client: Pick<KubernetesClient, "json">,
  token: string,
): Promise<UserInfo | undefined> {
  type Status = { authenticated?: boolean; user?: UserInfo };
  const status = await review<Status>(client, "authentication.k8s.io/v1", "TokenReview", { token });
  return status?.authenticated === true ? status.user : undefined;
}

/** Whether the cluster lets this user do that. @throws ApiError when the API server gives no answer */
export async function reviewAccess(
  client: Pick<KubernetesClient, "json">,
  { username, uid, groups, extra }: UserInfo,
  attributes: AccessAttributes,
): Promise<boolean> {
  return isAllowed(client, "SubjectAccessReview", { user: username, uid, groups, extra, ...attributes });
}

/** Whether the cluster lets the client itself do that. @throws ApiError when the API server gives no answer */
export function reviewOwnAccess(client: Pick<KubernetesClient, "json">, resourceAttributes: object): Promise<boolean> {
  return isAllowed(client, "SelfSubjectAccessReview", { resourceAttributes });
}

async function isAllowed(client: Pick<KubernetesClient, "json">, kind: string, spec: object): Promise<boolean> {
  return (await review<{ allowed?: boolean }>(client, "authorization.k8s.io/v1", kind, spec))?.allowed === true;
}

/** Asks for a review. @returns its status @throws ApiError when the API server gives no answer */
export async function review<Status>(
  client: Pick<KubernetesClient, "json">,
  apiVersion: string,
  kind: string,
  spec: object,
): Promise<Status | undefined> {
  const path = `/apis/${apiVersion}/${kind.toLowerCase()}s`;
  return (await client.json<{ status?: Status }>("POST", path, { body: { apiVersion, kind, spec } })).status;
}

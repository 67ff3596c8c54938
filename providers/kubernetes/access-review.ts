import type { KubernetesClient } from "./client";

/** A user as the API server's reviews tell and ask of one. */
export interface UserInfo {
  username?: string;
  uid?: string;
  groups?: readonly string[];
  extra?: Readonly<Record<string, readonly string[]>>;
}

/** A request to authorize: for a resource, or for a non-resource path. */
export type AccessAttributes =
  | {
      resourceAttributes: {
        verb: string;
        version: string;
        resource: string;
        group?: string;
        namespace?: string;
        name?: string;
      };
    }
  | { nonResourceAttributes: { verb: string; path: string } };

/** The user of a bearer token; `undefined` when it is not valid. @throws ApiError when the API server gives no answer */
export async function reviewToken(
  client: Pick<KubernetesClient, "json">,
  token: string,
): Promise<UserInfo | undefined> {
  const { status } = await client.json<{ status?: { authenticated?: boolean; user?: UserInfo } }>(
    "POST",
    "/apis/authentication.k8s.io/v1/tokenreviews",
    { body: { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec: { token } } },
  );
  return status?.authenticated === true ? status.user : undefined;
}

/** Whether the cluster lets this user do that. @throws ApiError when the API server gives no answer */
export async function reviewAccess(
  client: Pick<KubernetesClient, "json">,
  { username, uid, groups, extra }: UserInfo,
  attributes: AccessAttributes,
): Promise<boolean> {
  const { status } = await client.json<{ status?: { allowed?: boolean } }>(
    "POST",
    "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    {
      body: {
        apiVersion: "authorization.k8s.io/v1",
        kind: "SubjectAccessReview",
        spec: { user: username, uid, groups, extra, ...attributes },
      },
    },
  );
  return status?.allowed === true;
}

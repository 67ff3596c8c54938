import type { Manifest } from "../../providers/kubernetes/client";
import type { TestCluster } from "../providers/kubernetes/test-cluster";

const RBAC = "rbac.authorization.k8s.io";

/** The token of a service account of the namespace with these rights there, and that to ask for previews. */
export async function previewerToken(cluster: TestCluster, name: string, rules: object[]): Promise<string> {
  const metadata = { name, namespace: cluster.namespace };
  const previews = { apiGroups: ["kindstack.dev"], resources: ["previews"], verbs: ["create"] };
  const roleRef = { apiGroup: RBAC, kind: "Role", name };
  const subjects = [{ kind: "ServiceAccount", ...metadata }];
  const manifests: Manifest[] = [
    { apiVersion: "v1", kind: "ServiceAccount", metadata },
    { apiVersion: `${RBAC}/v1`, kind: "Role", metadata, rules: [previews, ...rules] },
    { apiVersion: `${RBAC}/v1`, kind: "RoleBinding", metadata, roleRef, subjects },
  ];
  for (const manifest of manifests) await cluster.client.create(manifest);
  const path = `/api/v1/namespaces/${cluster.namespace}/serviceaccounts/${name}/token`;
  const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} };
  return (await cluster.client.json<{ status: { token: string } }>("POST", path, { body })).status.token;
}

import fs from "node:fs";
import path from "node:path";
import { type Cluster, KubeConfig } from "@kubernetes/client-node";
import { beforeAll, expect } from "vitest";
import type { Manifest } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import type { PolicyRule } from "../../stacks/contract/capabilities";
import { controlPlane } from "../control-plane";
import { TestAuthority } from "../tls/test-authority";
import { client, tokenOf } from "./objects";
import type { TestOperator } from "./operator";

const RBAC = "rbac.authorization.k8s.io";
const REVIEWS = "authorization.k8s.io/v1";

/** What an operator needs to preview for others, and what these need to ask it: files in a folder of the test. */
export function usePreviewCertificate(folder: string) {
  const [tls, ca] = [path.join(folder, "tls"), path.join(folder, "ca.crt")];
  beforeAll(async () => {
    const authority = await TestAuthority.create();
    const { certificate, key } = await authority.server();
    fs.mkdirSync(tls);
    fs.writeFileSync(path.join(tls, "tls.crt"), certificate);
    fs.writeFileSync(path.join(tls, "tls.key"), key);
    fs.writeFileSync(ca, authority.own.certificate);
  });
  return { ca, args: ["--preview-port", "0", "--preview-certificate", tls] };
}

/** Where an operator previews for others. */
export function previewsAt({ log }: TestOperator): string {
  return `https://127.0.0.1:${/"previews":"[^"]*:(\d+)"/.exec(log)?.[1]}`;
}

/** The token of a ServiceAccount with these rights. @param within the namespaces in which it has them; all, by default */
export async function makeAccount(
  namespace: string,
  name: string,
  rules: PolicyRule[],
  within?: readonly string[],
): Promise<string> {
  const metadata = { name, namespace };
  const roleRef = { apiGroup: RBAC, kind: "ClusterRole", name: `${namespace}-${name}` };
  const binding = { roleRef, subjects: [{ kind: "ServiceAccount", ...metadata }] };
  const bindings: Manifest[] = within?.map((where) => ({
    ...{ apiVersion: `${RBAC}/v1`, kind: "RoleBinding", ...binding },
    metadata: { name: roleRef.name, namespace: where },
  })) ?? [{ apiVersion: `${RBAC}/v1`, kind: "ClusterRoleBinding", metadata: { name: roleRef.name }, ...binding }];
  const manifests: Manifest[] = [
    { apiVersion: "v1", kind: "ServiceAccount", metadata },
    { apiVersion: `${RBAC}/v1`, kind: "ClusterRole", metadata: { name: roleRef.name }, rules },
    ...bindings,
  ];
  for (const manifest of manifests) await client.apply(manifest);
  const user = `system:serviceaccount:${namespace}:${name}`;
  // The API server sees a right a moment after it was given.
  await eventually(async () => {
    for (const {
      apiGroups: [group],
      resources: [resource],
      verbs: [verb],
    } of rules) {
      const resourceAttributes = { group, resource, verb, ...(within && { namespace: within[0] }) };
      const body = { apiVersion: REVIEWS, kind: "SubjectAccessReview", spec: { user, resourceAttributes } };
      const review = await client.json("POST", `/apis/${REVIEWS}/subjectaccessreviews`, { body });
      expect(review).toMatchObject({ status: { allowed: true } });
    }
  });
  return tokenOf(namespace, name);
}

/** Writes a kubeconfig for the control plane with a token. */
export function writeKubeconfig(file: string, token: string): void {
  const config = new KubeConfig();
  config.loadFromFile(controlPlane().kubeconfig);
  config.loadFromClusterAndUser(config.getCurrentCluster() as Cluster, { name: "previewer", token });
  fs.writeFileSync(file, config.exportConfig());
}

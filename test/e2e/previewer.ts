import fs from "node:fs";
import path from "node:path";
import { type Cluster, KubeConfig } from "@kubernetes/client-node";
import { beforeAll, expect } from "vitest";
import { eventually } from "../../src/testing/eventually";
import type { PolicyRule } from "../../stacks/contract/capabilities";
import { controlPlane } from "../control-plane";
import { bindingFor } from "../rights";
import { TestAuthority } from "../tls/test-authority";
import { objectOf } from "./manifests";
import { client, tokenOf } from "./objects";
import type { TestOperator } from "./operator";

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
  const subjects = [{ kind: "ServiceAccount", name, namespace }];
  const role = `${namespace}-${name}`;
  const places = within?.map((where) => ({ name: role, namespace: where })) ?? [{ name: role }];
  const manifests = [
    objectOf({ apiVersion: "v1", kind: "ServiceAccount" }, name, namespace),
    objectOf({ apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole" }, role, undefined, { rules }),
    ...places.map((place) => bindingFor(subjects, role, place)),
  ];
  for (const manifest of manifests) await client.apply(manifest);
  const user = `system:serviceaccount:${namespace}:${name}`;
  // The API server sees a right a moment after it was given.
  await eventually(async () => {
    for (const { apiGroups, resources, verbs } of rules) {
      const asked = { group: apiGroups[0], resource: resources[0], verb: verbs[0] };
      const resourceAttributes = { ...asked, ...(within && { namespace: within[0] }) };
      const body = { apiVersion: REVIEWS, kind: "SubjectAccessReview", spec: { user, resourceAttributes } };
      const review = await client.json("POST", `/apis/${REVIEWS}/subjectaccessreviews`, { body });
      expect(review).toMatchObject({ status: { allowed: true } });
    }
  });
  return tokenOf(namespace, name);
}

/** Writes a kubeconfig with a token. @param recorder the address of a proxy before the API server */
export function writeKubeconfig(file: string, token: string, recorder?: string): void {
  const config = new KubeConfig();
  config.loadFromFile(controlPlane().kubeconfig);
  const direct = config.getCurrentCluster() as Cluster;
  const cluster = recorder === undefined ? direct : { name: "recorded", server: recorder, skipTLSVerify: true };
  config.loadFromClusterAndUser(cluster, { name: "account", token });
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, config.exportConfig());
}

import { expect, it } from "vitest";
import { known } from "../../../providers/kubernetes/client";
import { podSet } from "../../../stacks/kinds/podset/kind";
import { parseConfiguration } from "../../../stacks/platform/parse-configuration";
import { missingPrerequisites } from "../../../stacks/platform/prerequisites";
import { TestCluster } from "../../providers/kubernetes/test-cluster";

const SLICES = { apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice" };

const cluster = TestCluster.use();

/** What the ports of the cluster are, as it publishes them. */
async function listen(name: string, namespace: string, service: string, port: { name: string; port: number }) {
  await cluster.client.apply({
    ...SLICES,
    metadata: { name, namespace, labels: { "kubernetes.io/service-name": service } },
    addressType: "IPv4",
    ports: [{ ...port, protocol: "TCP" }],
    endpoints: [{ addresses: ["192.0.2.1"] }],
  });
}

const problemsWith = (values: Record<string, string>) =>
  missingPrerequisites(
    parseConfiguration({ backendUrl: "s3://state", passphrase: "p", ...values }, "1.2.3"),
    [podSet],
    cluster.client,
  );

it("names the ports of API server and DNS that the NetworkPolicy would close", async () => {
  if ((await known(cluster.client.get(SLICES, "kubernetes", "default"))) === undefined) {
    await listen("kubernetes", "default", "kubernetes", { name: "https", port: 16443 });
  }
  const server = await known(cluster.client.get(SLICES, "kubernetes", "default"));
  const [{ port } = { port: 0 }] = (server?.ports ?? []) as { port: number }[];
  await listen("dns-default-x", cluster.namespace, "dns-default", { name: "dns-tcp", port: 5353 });

  expect(await problemsWith({})).toEqual([
    `the API server listens on port ${port}, and egressPorts is 443, 6443; add it, or set networkPolicy to false`,
    "the cluster's DNS listens on port 5353, and dnsPorts is 53; add it, or set networkPolicy to false",
  ]);
  expect(await problemsWith({ egressPorts: `[443,${port}]`, dnsPorts: "[53,5353]" })).toEqual([]);
  expect(await problemsWith({ networkPolicy: "false" })).toEqual([]);
});

it("names a ConfigMap with a CA that is missing, or lacks the key", async () => {
  const { client, namespace } = cluster;
  const ca = { networkPolicy: "false", namespace, caBundle: "our-cas", admissionClientCa: "api-servers" };
  await client.apply({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "our-cas", namespace },
    data: { a: "" },
  });

  expect(await problemsWith(ca)).toEqual([
    `ConfigMap ${namespace}/our-cas has no ca.crt`,
    `ConfigMap ${namespace}/api-servers does not exist; create it with ca.crt`,
  ]);
  expect(await problemsWith({ ...ca, caBundle: "kube-root-ca.crt", admission: "false" })).toEqual([]);
});

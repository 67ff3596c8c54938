import { randomBytes } from "node:crypto";
import { KubeConfig } from "@kubernetes/client-node";
import { afterAll, beforeAll, expect, it } from "vitest";
import { KubernetesClient } from "../../providers/kubernetes/client";
import { installKinds } from "../../src/operator/install";
import { permittedKinds } from "../../src/operator/rights";
import { customResourceDefinition } from "../../stacks/contract/crd";
import { kindApiVersion, kindName } from "../../stacks/contract/kind";
import { operatorRules } from "../../stacks/contract/rbac";
import { kinds } from "../../stacks/index";
import { memcached } from "../../stacks/memcached/kind";
import { postgresWriter } from "../../stacks/postgres-writer/kind";
import { controlPlane } from "../control-plane";
import { tokenOf } from "../e2e/objects";
import { TestCluster } from "../providers/kubernetes/test-cluster";

let cluster: TestCluster;
beforeAll(async () => {
  cluster = await TestCluster.open(controlPlane());
});
afterAll(() => cluster.close());

const definitions = () => cluster.client.resourceType("apiextensions.k8s.io/v1", "CustomResourceDefinition");

// A list of versions is one field. Were it stored in another form than it is applied in, `kubectl apply --server-side`
// of the same CRDs would be refused as a conflict with the operator that installed them.
it("installs CRDs that are stored as they are written", async () => {
  await installKinds(cluster.client, kinds);

  const crds = await definitions();
  for (const kind of kinds) {
    const stored = await cluster.client.get(crds, kindName(kind));
    const wanted = customResourceDefinition(kind).spec as { versions: unknown };
    expect((stored?.spec as typeof wanted | undefined)?.versions).toEqual(wanted.versions);
  }
});

it("keeps the kinds that the operator has the rights for, and says what the others lack", async () => {
  const name = `granted-${randomBytes(4).toString("hex")}`;
  const role = { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: { name } };
  const manifests = [
    {
      ...role,
      rules: operatorRules([postgresWriter, memcached]).filter(({ resources }) => !resources.includes("deployments")),
    },
    {
      ...role,
      kind: "ClusterRoleBinding",
      subjects: [{ kind: "ServiceAccount", name: "default", namespace: cluster.namespace }],
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name },
    },
  ];
  for (const manifest of manifests) await cluster.applyAs("test", manifest);
  const token = await tokenOf(cluster.namespace, "default");
  const config = new KubeConfig();
  config.loadFromClusterAndUser(cluster.config().getCurrentCluster() as never, { name, token });
  const client = new KubernetesClient(config);
  const reported = new Map<string, string>();
  try {
    const permitted = await permittedKinds(client, [postgresWriter, memcached], (kind, reason) =>
      reported.set(kind, reason),
    );

    expect(permitted).toEqual([postgresWriter]);
    expect([...reported.keys()]).toEqual([kindName(memcached)]);
    expect(reported.get(kindName(memcached))).toContain(
      "the operator may not get, list, watch, create, patch, delete deployments.apps; install Kindstack with this kind",
    );
    await expect(permittedKinds(client, [memcached], () => {})).rejects.toThrow("no kind can be served");
    expect(await permittedKinds(cluster.client, kinds, (kind, reason) => reported.set(kind, reason))).toEqual(kinds);
  } finally {
    await client.close();
    for (const { apiVersion, kind } of manifests) {
      await cluster.client.delete(await cluster.client.resourceType(apiVersion, kind), name);
    }
  }
});

it("ends when the API server serves what it has installed", async () => {
  const crds = await definitions();
  for (let round = 0; round < 10; round++) {
    const kind = { ...postgresWriter, group: `installed-${randomBytes(4).toString("hex")}.example.com` };
    try {
      await installKinds(cluster.client, [kind]);

      const type = await cluster.client.resourceType(kindApiVersion(kind), kind.kind);
      expect(await cluster.client.list(type)).toMatchObject({ items: [] });
    } finally {
      await cluster.client.delete(crds, kindName(kind));
    }
  }
});

it("leaves the CRD of another operator as it is, and names the kinds that remain", async () => {
  const crds = await definitions();
  const foreign = { ...postgresWriter, group: `foreign-${randomBytes(4).toString("hex")}.example.com` };
  const manifest = customResourceDefinition(foreign);
  await cluster.client.create({ ...manifest, metadata: { name: kindName(foreign) } });
  try {
    await expect(installKinds(cluster.client, [...kinds, foreign])).rejects.toThrow(
      `${kindName(foreign)}. Leave these kinds to their operator and choose the others: --kinds ${kinds.map(kindName).join(",")}`,
    );

    const after = await cluster.client.get(crds, kindName(foreign));
    expect(after?.metadata.labels).toBeUndefined();
  } finally {
    await cluster.client.delete(crds, kindName(foreign));
  }
});

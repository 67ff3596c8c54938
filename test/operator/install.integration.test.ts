import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { installKinds } from "../../src/operator/install";
import { customResourceDefinition } from "../../stacks/contract/crd";
import { kindApiVersion, kindName } from "../../stacks/contract/kind";
import { kinds } from "../../stacks/index";
import { postgresWriter } from "../../stacks/postgres-writer/kind";
import { controlPlane } from "../control-plane";
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
  await cluster.client.create(crds, { ...manifest, metadata: { name: kindName(foreign) } });
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

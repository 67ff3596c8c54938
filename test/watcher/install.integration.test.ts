import { expect, inject, it } from "vitest";
import { installKinds } from "../../src/watcher/install";
import { customResourceDefinition } from "../../stacks/contract/crd";
import { kindName } from "../../stacks/contract/kind";
import { kinds } from "../../stacks/index";
import { TestCluster } from "../providers/kubernetes/test-cluster";

// A list of versions is one field. Were it stored in another form than it is applied in, `kubectl apply --server-side`
// of the same CRDs would be refused as a conflict with the operator that installed them.
it("installs CRDs that are stored as they are written", async () => {
  const cluster = await TestCluster.open(inject("cluster"));
  try {
    await installKinds(cluster.client, kinds);
    const crds = await cluster.client.resourceType("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    for (const kind of kinds) {
      const stored = await cluster.client.get(crds, kindName(kind));
      const wanted = customResourceDefinition(kind).spec as { versions: unknown };
      expect((stored?.spec as typeof wanted | undefined)?.versions).toEqual(wanted.versions);
    }
  } finally {
    await cluster.close();
  }
});

import { pino } from "pino";
import { expect, it } from "vitest";
import { installKinds } from "../../src/operator/install";
import { warnOfUnserved } from "../../src/operator/unserved-objects";
import { kindName } from "../../stacks/contract/kind";
import { FINALIZER } from "../../stacks/contract/object";
import { memcached } from "../../stacks/kinds/memcached/kind";
import { podSet } from "../../stacks/kinds/podset/kind";
import { controlPlane } from "../control-plane";
import { TestCluster } from "../providers/kubernetes/test-cluster";

it("warns of objects of kinds that are not served, which no operator deletes", async () => {
  const cluster = await TestCluster.open(controlPlane());
  await installKinds(cluster.client, [memcached, podSet]);
  const lines: object[] = [];
  const logger = pino({ base: null }, { write: (line) => void lines.push(JSON.parse(line)) });
  const ours = () => lines.filter((line) => JSON.stringify(line).includes(cluster.namespace));
  const object = (finalizers: string[]) => ({
    apiVersion: "batch.tutorial.kubebuilder.io/v1",
    kind: "PodSet",
    metadata: { name: "kept", namespace: cluster.namespace, finalizers },
    spec: { replicas: 1 },
  });

  await cluster.client.apply(object([FINALIZER]), { fieldManager: "test" });
  await warnOfUnserved(cluster.client, [memcached, podSet], logger);
  expect(ours()).toEqual([]);
  await warnOfUnserved(cluster.client, [memcached], logger);
  expect(ours()).toMatchObject([{ kind: kindName(podSet), objects: expect.any(Number) }]);

  await cluster.client.apply(object([]), { fieldManager: "test" });
  await cluster.close();
});

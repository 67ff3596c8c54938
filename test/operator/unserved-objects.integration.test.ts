import { pino } from "pino";
import { expect, it } from "vitest";
import { installKinds } from "../../src/operator/install";
import { warnOfUnserved } from "../../src/operator/unserved-objects";
import { eventually } from "../../src/testing/eventually";
import { kindName } from "../../stacks/contract/kind";
import { FINALIZER } from "../../stacks/contract/object";
import { memcached } from "../../stacks/kinds/memcached/kind";
import { podSet } from "../../stacks/kinds/podset/kind";
import { controlPlane } from "../control-plane";
import { TestCluster } from "../providers/kubernetes/test-cluster";
import { roleFor, userNamed } from "../rights";

const linesOf = () => {
  const lines: { kind?: string; msg?: string }[] = [];
  return { lines, logger: pino({ base: null }, { write: (line) => void lines.push(JSON.parse(line)) }) };
};

it("warns of objects of kinds that are not served, which no operator deletes", async () => {
  const cluster = await TestCluster.open(controlPlane());
  await installKinds(cluster.client, [memcached, podSet]);
  const { lines, logger } = linesOf();
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

it("warns of kinds whose objects the operator may not list, as its rights are those of the kinds that it serves", async () => {
  const cluster = await TestCluster.open(controlPlane());
  await installKinds(cluster.client, [memcached, podSet]);
  const name = cluster.namespace;
  const rules = [{ apiGroups: ["apiextensions.k8s.io"], resources: ["customresourcedefinitions"], verbs: ["list"] }];
  for (const manifest of roleFor([userNamed(name)], rules, { name })) await cluster.client.create(manifest);
  const client = cluster.as(name);
  const { lines, logger } = linesOf();
  await eventually(async () => {
    await warnOfUnserved(client, [memcached], logger);
    expect(lines.map(({ kind }) => kind)).toContain(kindName(podSet));
  });
  expect(lines.map(({ kind }) => kind)).not.toContain(kindName(memcached));
  await cluster.close();
});

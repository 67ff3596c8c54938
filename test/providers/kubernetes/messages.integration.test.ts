import { expect, it } from "vitest";
import type { Manifest } from "../../../providers/kubernetes/client";
import { MESSAGES } from "../../../providers/kubernetes/messages";
import { TestCluster } from "./test-cluster";

/* What is told in words alone, by the API server itself; `refusals.integration.test.ts`, here and of previews, has the rest. */

const { client, namespace } = TestCluster.use();

const serviceWith = (spec: object): Manifest => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name: "web", namespace },
  spec,
});
const port = (name: string) => ({ name, port: 80, protocol: "TCP" });

it.each([
  ["a field that its schema does not have", { prots: [] }],
  ["a value of another type", { ports: "80" }],
  ["the same item twice", { ports: [port("a"), port("a")] }],
])("an apply with %s is invalid, though it is called an error of the server", async (_, spec) => {
  await expect(client.apply(serviceWith(spec))).rejects.toMatchObject({
    ...{ status: 422, reason: "Invalid", errorClass: "terminal" },
    message: expect.stringMatching(MESSAGES.untyped),
  });
});

it("an apply to a predecessor", async () => {
  const configMap = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "successor", namespace } };
  await client.create(configMap);
  const uid = "00000000-0000-4000-8000-000000000000";
  const applied = client.apply({ ...configMap, metadata: { ...configMap.metadata, uid } });
  await expect(applied).rejects.toMatchObject({ status: 409, message: "ConfigMap successor is another object by now" });
});

it("a path that no type is served at", async () => {
  await expect(client.json("GET", "/api/v1/nosuchthings")).rejects.toThrow(MESSAGES.notServed);
});

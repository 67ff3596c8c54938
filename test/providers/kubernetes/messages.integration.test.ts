import { expect, it } from "vitest";
import { MESSAGES } from "../../../providers/kubernetes/messages";
import { TestCluster } from "./test-cluster";

/* What is told in words alone, by the API server itself; `refusals.integration.test.ts`, here and of previews, has the rest. */

const cluster = TestCluster.use();
const { client } = cluster;

const serviceWith = (spec: object) => cluster.manifest({ apiVersion: "v1", kind: "Service" }, "web", { spec });
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

it("a path that no type is served at", async () => {
  await expect(client.json("GET", "/api/v1/nosuchthings")).rejects.toThrow(MESSAGES.notServed);
});

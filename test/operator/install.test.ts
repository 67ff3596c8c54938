import { expect, it } from "vitest";
import { ApiError } from "../../providers/kubernetes/client";
import { installKinds } from "../../src/operator/install";
import { postgresWriter } from "../../stacks/postgres-writer/kind";

const TYPE = { apiVersion: "demo.yash.com/v1", kind: "PostgresWriter", plural: "postgreswriters", namespaced: true };

/** An API server that is asked about a type for as long as it answers with errors. */
function clientWith(answers: Error[]) {
  const steps: string[] = [];
  return {
    steps,
    apply: async (_type: unknown, object: { metadata: { name?: string } }) => {
      steps.push(`apply ${object.metadata.name}`);
      return { object: object as never, created: true };
    },
    resourceType: async () => {
      steps.push("discover");
      const error = answers.shift();
      if (error !== undefined) throw error;
      return TYPE;
    },
  };
}

it("ends when discovery has the kinds, some time after their CRDs were applied", async () => {
  const client = clientWith([
    new ApiError(404, "Http404", "404 page not found"),
    new ApiError(404, "UnknownKind", "the API server does not serve PostgresWriter"),
  ]);

  await installKinds(client, [postgresWriter]);

  expect(client.steps).toEqual(["apply postgreswriters.demo.yash.com", "discover", "discover", "discover"]);
});

it("does not wait where the API server refuses", async () => {
  const refusal = new ApiError(403, "Forbidden", "no");

  await expect(installKinds(clientWith([refusal]), [postgresWriter])).rejects.toBe(refusal);
});

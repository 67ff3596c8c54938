import { describe, expect, it } from "vitest";
import { ApiError, type LiveObject, type ObjectType } from "../../providers/kubernetes/client";
import { installKinds, requireAuthorPolicies } from "../../src/operator/install";
import { MUTATION_TYPE } from "../../stacks/contract/validating-policy";
import { podSet } from "../../stacks/kinds/podset/kind";
import { postgresWriter } from "../../stacks/kinds/postgres-writer/kind";
import { parseConfiguration } from "../../stacks/platform/parse-configuration";
import { missingPrerequisites } from "../../stacks/platform/prerequisites";
import { lookupOf } from "../providers/kubernetes/lookup-of";

const TYPE = { apiVersion: "demo.yash.com/v1", kind: "PostgresWriter", plural: "postgreswriters", namespaced: true };

/** An API server that is asked about a type for as long as it answers with errors. */
function clientWith(answers: Error[], definition?: LiveObject) {
  const steps: string[] = [];
  return {
    steps,
    get: async (_type: ObjectType, name: string) =>
      lookupOf(definition?.metadata.name === name ? definition : undefined),
    apply: async (object: { metadata: { name?: string } }) => {
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

  const plans = ["plans.kindstack.dev", "approvals.kindstack.dev"];
  const kind = "postgreswriters.demo.yash.com";
  const policies = [`mode.${kind}`, "mode.namespaces.kindstack.dev", `finalizer.${kind}`];
  expect(client.steps).toEqual([
    "apply postgreswriters.demo.yash.com",
    ...plans.map((name) => `apply ${name}`),
    ...[...plans.toReversed(), ...policies].flatMap((name) => [`apply ${name}`, `apply ${name}`]), // each with its binding
    ...Array(2 + 3).fill("discover"),
  ]);
});

it("does not wait where the API server refuses", async () => {
  const refusal = new ApiError(403, "Forbidden", "no");

  await expect(installKinds(clientWith([refusal]), [postgresWriter])).rejects.toBe(refusal);
});

it("says where the API server cannot record who changes an object", async () => {
  const unknown = new ApiError(404, "UnknownKind", "the API server does not serve MutatingAdmissionPolicy");
  await expect(requireAuthorPolicies(clientWith([unknown]))).rejects.toThrow(
    "--author-may-not-approve: the API server does not serve MutatingAdmissionPolicy in admissionregistration.k8s.io/v1",
  );
  await requireAuthorPolicies(clientWith([]));

  const list = async ({ kind }: ObjectType) => {
    if (kind === MUTATION_TYPE.kind) throw unknown;
    return { items: [], resourceVersion: "1" };
  };
  const client = { get: async () => lookupOf(undefined), list };
  const configuration = parseConfiguration(
    { authorMayNotApprove: "true", passphrase: "p", backendUrl: "s3://state", networkPolicy: "false" },
    "1.2.3",
  );
  expect(await missingPrerequisites(configuration, [podSet], client)).toEqual([
    expect.stringContaining("upgrade to Kubernetes 1.36, or set authorMayNotApprove to false"),
  ]);
});

describe("a CRD that is there already", () => {
  const definition = (labels: Record<string, string>) =>
    ({
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: "postgreswriters.demo.yash.com", labels, uid: "u", resourceVersion: "1" },
    }) as LiveObject;

  it("is not touched when another operator installed it, and the way out is said", async () => {
    const client = clientWith([], definition({ "app.kubernetes.io/managed-by": "other" }));

    await expect(installKinds(client, [postgresWriter, podSet])).rejects.toThrow(
      "that Kindstack did not install: postgreswriters.demo.yash.com. Leave these kinds to their operator " +
        "and choose the others: --kinds podsets.batch.tutorial.kubebuilder.io",
    );
    expect(client.steps).toEqual([]);
  });

  it.each([
    { "app.kubernetes.io/managed-by": "kindstack" }, // by versions that knew no other label
    { "app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/part-of": "kindstack" },
  ])("is brought up to date when Kindstack installed it: %j", async (labels) => {
    const client = clientWith([], definition(labels));

    await installKinds(client, [postgresWriter]);

    expect(client.steps).toContain("apply postgreswriters.demo.yash.com");
  });
});

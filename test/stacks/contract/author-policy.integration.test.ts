import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type KubernetesClient, known, type LiveObject } from "../../../providers/kubernetes/client";
import { installKinds, requireAuthorPolicies } from "../../../src/operator/install";
import { eventually } from "../../../src/testing/eventually";
import { AUTHOR_ANNOTATION, IGNORE_FIELDS_ANNOTATION } from "../../../stacks/contract/annotations";
import { authorPolicies, recordedAuthors } from "../../../stacks/contract/author-policy";
import { DEFINITION_TYPE } from "../../../stacks/contract/crd";
import { type AnyKind, kindName, kindType } from "../../../stacks/contract/kind";
import { podSet } from "../../../stacks/kinds/podset/kind";
import { TestCluster } from "../../providers/kubernetes/test-cluster";
import { roleFor, userNamed } from "../../rights";

/*
 * Who has changed an object, as the real API server records it.
 */

/** Of this file alone: its policies are in force in the whole cluster. */
const kind: AnyKind = { ...podSet, group: `author-${randomBytes(4).toString("hex")}.example.com` };
const type = kindType(kind);

const RBAC = "rbac.authorization.k8s.io";
const [ANN, BOB] = ["ann", "bob"] as const;

const cluster = TestCluster.use();
let ann: KubernetesClient;
let bob: KubernetesClient;

beforeAll(async () => {
  await requireAuthorPolicies(cluster.client);
  await installKinds(cluster.client, [kind], undefined, { authorMayNotApprove: true });
  const rules = [{ apiGroups: [kind.group], resources: ["*"], verbs: ["*"] }];
  for (const manifest of roleFor([ANN, BOB].map(userNamed), rules, { name: kind.group })) {
    await cluster.client.create(manifest);
  }
  [ann, bob] = [cluster.as(ANN), cluster.as(BOB)];
  // Policies take a moment to be in force.
  await eventually(async () => {
    const metadata = { generateName: "probe-", namespace: cluster.namespace };
    const probe = await cluster.client.create({ ...type, metadata, spec: { replicas: 1 } });
    expect(recordedAuthors(probe)).toHaveLength(1);
    await expect(scale(cluster.client, probe.metadata.name)).rejects.toThrow("may not scale");
  });
});
afterAll(async () => {
  for (const policy of authorPolicies([kind])) await cluster.client.delete(policy, policy.metadata.name ?? "");
  for (const role of ["ClusterRole", "ClusterRoleBinding"]) {
    await cluster.client.delete({ apiVersion: `${RBAC}/v1`, kind: role }, kind.group);
  }
  await cluster.client.delete(DEFINITION_TYPE, kindName(kind));
});

function create(client: KubernetesClient, name: string, annotations: Record<string, string> = {}) {
  const metadata = { name, namespace: cluster.namespace, annotations };
  return client.create({ ...type, metadata, spec: { replicas: 1 } });
}

function patch(client: KubernetesClient, name: string, body: object): Promise<LiveObject> {
  return client.mergePatch(type, name, cluster.namespace, body);
}

async function scale(client: KubernetesClient, name: string, replicas = 5): Promise<unknown> {
  return subresource(client, name, "scale", { spec: { replicas } });
}

/** What the operator says when all is applied. */
async function settle({ metadata: { name, generation } }: LiveObject): Promise<void> {
  const condition = { type: "Synced", status: "True", reason: "UpToDate", message: "", observedGeneration: generation };
  const conditions = [{ ...condition, lastTransitionTime: "2026-01-01T00:00:00Z" }];
  await subresource(cluster.client, name, "status", { status: { conditions } });
}

function subresource(client: KubernetesClient, name: string, path: string, body: object) {
  const { apiVersion } = type;
  const url = `/apis/${apiVersion}/namespaces/${cluster.namespace}/${kind.plural}/${name}/${path}`;
  return client.json("PATCH", url, { contentType: "application/merge-patch+json", body });
}

async function authors(name: string) {
  const object = await known(cluster.client.get(type, name, cluster.namespace));
  return object && recordedAuthors(object);
}

const annotate = (annotations: Record<string, string | null>) => ({ metadata: { annotations } });

describe("who has changed an object", () => {
  it("is recorded as the API server knows the user, whatever the object says", async () => {
    const created = await create(ann, "created", { [AUTHOR_ANNOTATION]: BOB });
    expect(recordedAuthors(created)).toEqual([ANN]);
    for (const value of [BOB, "", null]) {
      expect(recordedAuthors(await patch(ann, "created", annotate({ [AUTHOR_ANNOTATION]: value })))).toEqual([ANN]);
    }
    const forged = { ...annotate({ [AUTHOR_ANNOTATION]: ANN }), spec: { replicas: 2 } };
    expect(recordedAuthors(await patch(bob, "created", forged))).toEqual([ANN, BOB]);
    const emptied = await patch(bob, "created", { metadata: { annotations: null } });
    expect(recordedAuthors(emptied)).toEqual([ANN, BOB]);
  });

  it("is kept where something else is changed, and where another manager applies the object without it", async () => {
    await create(ann, "kept");
    await patch(bob, "kept", { metadata: { labels: { a: "b" } } });
    const metadata = { name: "kept", namespace: cluster.namespace };
    for (const fieldManager of ["one", "one", "two"]) {
      await bob.apply({ ...type, metadata, spec: { replicas: 1 } }, { fieldManager });
    }
    await patch(bob, "kept", { metadata: { finalizers: ["example.com/a"] } });
    await bob.delete(type, "kept", cluster.namespace);
    expect(await authors("kept")).toEqual([ANN]);
    await patch(bob, "kept", { metadata: { finalizers: null } });
    expect(await authors("kept")).toBeUndefined();
  });

  it("is all who changed it since it was in sync, by its spec or what it leaves to others", async () => {
    await create(ann, "several");
    await patch(bob, "several", annotate({ [IGNORE_FIELDS_ANNOTATION]: "Deployment/several:spec.replicas" }));
    expect(await authors("several")).toEqual([ANN, BOB]);
    await patch(ann, "several", { spec: { replicas: 2 } });
    expect(await authors("several")).toEqual([ANN, BOB]);
    await settle((await known(cluster.client.get(type, "several", cluster.namespace))) as LiveObject);
    expect(await authors("several")).toEqual([ANN, BOB]);
    await patch(bob, "several", { spec: { replicas: 3 } });
    expect(await authors("several")).toEqual([BOB]);
    await patch(ann, "several", { spec: { replicas: 4 } });
    expect(await authors("several")).toEqual([BOB, ANN]);
  });

  it("is not hidden by a scale: who may approve changes the spec instead", async () => {
    await create(ann, "scaled");
    await scale(ann, "scaled");
    await expect(scale(cluster.client, "scaled")).rejects.toThrow(
      "who may approve plans.kindstack.dev may not scale, as that leaves no author: change the spec of the object",
    );
  });

  it("stays what it is through the status", async () => {
    await create(ann, "status");
    await subresource(bob, "status", "status", annotate({ [AUTHOR_ANNOTATION]: "carl" }));
    expect(await authors("status")).toEqual([ANN]);
  });
});

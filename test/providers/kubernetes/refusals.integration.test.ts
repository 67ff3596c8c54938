import { expect, it } from "vitest";
import { known, type Manifest } from "../../../providers/kubernetes/client";
import { eventually } from "../../../src/testing/eventually";
import { tokenOf } from "../../e2e/objects";
import { CONFIG_MAP, NAMESPACE, TestCluster } from "./test-cluster";

/** Each refusal that time heals, in the API server's own words: what it waits for, and that it is granted once that is there. */

const cluster = TestCluster.use();
const { client, namespace } = cluster;

const pod = (name: string, spec: object = {}): Manifest => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace },
  spec: { containers: [{ name: "main", image: "example.com/anything" }], ...spec },
});
const RBAC = "rbac.authorization.k8s.io";
const roleBinding = (name: string, kind: string, role: string): Manifest => ({
  apiVersion: `${RBAC}/v1`,
  kind: "RoleBinding",
  metadata: { name, namespace },
  roleRef: { apiGroup: RBAC, kind, name: role },
  subjects: [],
});

/** Expects the refusal of an apply to wait for something, and the same apply to be granted after `heal`. */
async function heals(manifest: Manifest, dependency: string, heal: () => Promise<unknown>, as = client): Promise<void> {
  // What the API server judges by, it may see with a delay.
  await eventually(() =>
    expect(as.apply(manifest, { dryRun: true })).rejects.toMatchObject({ errorClass: "retryable", dependency }),
  );
  await heal();
  await eventually(() => expect(as.apply(manifest)).resolves.toBeDefined());
}

it("no service account yet", async () => {
  const account = { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "late", namespace } };
  await heals(pod("account", { serviceAccountName: "late" }), `service account ${namespace}/late`, () =>
    client.create(account),
  );
});

it("a namespace that ends", async () => {
  const name = `${namespace}-ends`;
  const held = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "held", namespace: name } };
  await client.create({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
  await client.create({ ...held, metadata: { ...held.metadata, finalizers: ["example.com/held"] } });
  await client.delete(NAMESPACE, name);
  const late = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "late", namespace: name } };
  await heals(late, `namespace ${name}`, async () => {
    await client.mergePatch(CONFIG_MAP, "held", name, { metadata: { finalizers: null } });
    await eventually(async () => expect(await known(client.get(NAMESPACE, name))).toBeUndefined());
    await client.create({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
  });
  await client.delete(NAMESPACE, name);
});

it("a namespace that is still to be made", async () => {
  const name = `${namespace}-late`;
  const late = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "late", namespace: name } };
  await heals(late, `namespaces ${name}/${name}`, () =>
    client.create({ apiVersion: "v1", kind: "Namespace", metadata: { name } }),
  );
  await client.delete(NAMESPACE, name);
});

it("a used-up quota", async () => {
  const quota = { apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "few", namespace } };
  await client.create({ ...quota, spec: { hard: { configmaps: "0" } } });
  await heals(cluster.configMap("quota", {}), `quota ${namespace}/few`, () => client.delete(quota, "few", namespace));
});

it("a priority class and a runtime class that are still to be made", async () => {
  const priority = `${namespace}-priority`;
  await heals(pod("priority", { priorityClassName: priority }), `PriorityClass ${priority}`, () =>
    client.create({
      apiVersion: "scheduling.k8s.io/v1",
      kind: "PriorityClass",
      metadata: { name: priority },
      value: 1,
    }),
  );
  const runtime = `${namespace}-runtime`;
  await heals(pod("runtime", { runtimeClassName: runtime }), `RuntimeClass ${runtime}`, () =>
    client.create({ apiVersion: "node.k8s.io/v1", kind: "RuntimeClass", metadata: { name: runtime }, handler: "runc" }),
  );
  await client.delete({ apiVersion: "scheduling.k8s.io/v1", kind: "PriorityClass" }, priority);
  await client.delete({ apiVersion: "node.k8s.io/v1", kind: "RuntimeClass" }, runtime);
});

it("a missing right, and a role that is still to be made", async () => {
  await client.create({ apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "limited", namespace } });
  const limited = client.ofToken(await tokenOf(namespace, "limited"));
  const role = { apiVersion: `${RBAC}/v1`, kind: "Role", metadata: { name: "limited", namespace } };
  const rules = [{ apiGroups: [""], resources: ["configmaps"], verbs: ["*"] }];
  const binding = { ...roleBinding("limited", "Role", "limited") };
  try {
    await heals(
      cluster.configMap("right", {}),
      `right to patch resource "configmaps" in API group "" in the namespace "${namespace}"`,
      async () => {
        await client.create({ ...role, rules });
        await client.create({ ...binding, subjects: [{ kind: "ServiceAccount", name: "limited", namespace }] });
      },
      limited,
    );
    const bindings = [{ apiGroups: [RBAC], resources: ["rolebindings"], verbs: ["*"] }];
    await client.mergePatch(role, "limited", namespace, { rules: [...rules, ...bindings] });
    const absent = roleBinding("late", "Role", "late");
    await heals(
      absent,
      `rolebindings.${RBAC} ${namespace}/late`, // the API server names the binding's type with it
      () => client.create({ ...role, metadata: { name: "late", namespace }, rules }),
      limited,
    );
    const secrets = [{ apiGroups: [""], resources: ["secrets"], verbs: ["get"] }];
    await client.create({ ...role, metadata: { name: "more", namespace }, rules: secrets });
    await heals(
      roleBinding("more", "Role", "more"),
      `rights that /apis/${RBAC}/v1/namespaces/${namespace}/rolebindings/more grants`,
      () => client.mergePatch(role, "limited", namespace, { rules: [...rules, ...bindings, ...secrets] }),
      limited,
    );
  } finally {
    await limited.close();
  }
});

it("a webhook without an endpoint", async () => {
  const name = `${namespace}.example.com`;
  const configuration = { apiVersion: "admissionregistration.k8s.io/v1", kind: "ValidatingWebhookConfiguration" };
  await client.create({
    ...configuration,
    metadata: { name },
    webhooks: [
      {
        name,
        admissionReviewVersions: ["v1"],
        sideEffects: "None",
        failurePolicy: "Fail",
        clientConfig: { service: { name: "absent", namespace } },
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
        rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["*"], resources: ["configmaps"] }],
      },
    ],
  });
  await heals(cluster.configMap("webhook", {}), `webhook ${name}`, () => client.delete(configuration, name));
});

it("an aggregated API without an endpoint", async () => {
  const group = `${namespace}.example.org`;
  const service = { apiVersion: "apiregistration.k8s.io/v1", kind: "APIService" };
  await client.create({
    ...service,
    metadata: { name: `v1.${group}` },
    spec: {
      group,
      version: "v1",
      service: { name: "absent", namespace },
      groupPriorityMinimum: 1_000,
      versionPriority: 10,
      insecureSkipTLSVerify: true,
    },
  });
  try {
    await eventually(() =>
      expect(client.json("GET", `/apis/${group}/v1/things`)).rejects.toMatchObject({
        errorClass: "retryable",
        dependency: `API server for ${group}`,
      }),
    );
  } finally {
    await client.delete(service, `v1.${group}`);
  }
});

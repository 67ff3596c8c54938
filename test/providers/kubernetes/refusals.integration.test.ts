import { expect, it } from "vitest";
import { known, type Manifest } from "../../../providers/kubernetes/client";
import { eventually } from "../../../src/testing/eventually";
import { tokenOf } from "../../e2e/objects";
import { CONFIG_MAP, HELD, NAMESPACE, POD, ROLE_BINDING, TestCluster } from "./test-cluster";

/** Each refusal that time heals, in the API server's own words: what it waits for, and that it is granted once that is there. */

const cluster = TestCluster.use();
const { client, namespace } = cluster;

const pod = (name: string, spec: object) =>
  cluster.manifest(POD, name, { spec: { containers: [{ name: "main", image: "example.com/anything" }], ...spec } });
const RBAC = "rbac.authorization.k8s.io";
const roleBinding = (role: string, kind: string, subjects: object[] = []) =>
  cluster.manifest(ROLE_BINDING, role, { roleRef: { apiGroup: RBAC, kind, name: role }, subjects });
const ACCOUNT = { apiVersion: "v1", kind: "ServiceAccount" };

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
  const late = cluster.manifest(ACCOUNT, "late");
  const early = pod("account", { serviceAccountName: "late" });
  await heals(early, `service account ${namespace}/late`, () => client.create(late));
});

it("a namespace that ends", async () => {
  const name = `${namespace}-ends`;
  await client.create({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
  await client.create(cluster.configMap("held", {}, { namespace: name, ...HELD }));
  await client.delete(NAMESPACE, name);
  await heals(cluster.configMap("late", {}, { namespace: name }), `namespace ${name}`, async () => {
    await client.mergePatch(CONFIG_MAP, "held", name, { metadata: { finalizers: null } });
    await eventually(async () => expect(await known(client.get(NAMESPACE, name))).toBeUndefined());
    await client.create({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
  });
  await client.delete(NAMESPACE, name);
});

it("a namespace that is still to be made", async () => {
  const name = `${namespace}-late`;
  const late = cluster.configMap("late", {}, { namespace: name });
  const made = { apiVersion: "v1", kind: "Namespace", metadata: { name } };
  await heals(late, `namespaces ${name}/${name}`, () => client.create(made));
  await client.delete(NAMESPACE, name);
});

it("a used-up quota", async () => {
  const quota = cluster.manifest({ apiVersion: "v1", kind: "ResourceQuota" }, "few");
  await client.create({ ...quota, spec: { hard: { configmaps: "0" } } });
  await heals(cluster.configMap("quota", {}), `quota ${namespace}/few`, () => client.delete(quota, "few", namespace));
});

it.each([
  ["priority", "PriorityClass", "scheduling.k8s.io/v1", { value: 1 }],
  ["runtime", "RuntimeClass", "node.k8s.io/v1", { handler: "runc" }],
])("a %s class that is still to be made", async (word, kind, apiVersion, fields) => {
  const name = `${namespace}-${word}`;
  const made = { apiVersion, kind, metadata: { name }, ...fields };
  await heals(pod(word, { [`${word}ClassName`]: name }), `${kind} ${name}`, () => client.create(made));
  await client.delete(made, name);
});

it("a missing right, and a role that is still to be made", async () => {
  await client.create(cluster.manifest(ACCOUNT, "limited"));
  const limited = client.ofToken(await tokenOf(namespace, "limited"));
  const role = { apiVersion: `${RBAC}/v1`, kind: "Role" };
  const rules = [{ apiGroups: [""], resources: ["configmaps"], verbs: ["*"] }];
  const subjects = [{ kind: "ServiceAccount", name: "limited", namespace }];
  try {
    await heals(
      cluster.configMap("right", {}),
      `right to patch resource "configmaps" in API group "" in the namespace "${namespace}"`,
      async () => {
        await client.create(cluster.manifest(role, "limited", { rules }));
        await client.create(roleBinding("limited", "Role", subjects));
      },
      limited,
    );
    const bindings = [{ apiGroups: [RBAC], resources: ["rolebindings"], verbs: ["*"] }];
    await client.mergePatch(role, "limited", namespace, { rules: [...rules, ...bindings] });
    const absent = `rolebindings.${RBAC} ${namespace}/late`; // the API server names the binding's type with it
    const late = cluster.manifest(role, "late", { rules });
    await heals(roleBinding("late", "Role"), absent, () => client.create(late), limited);
    const secrets = [{ apiGroups: [""], resources: ["secrets"], verbs: ["get"] }];
    await client.create(cluster.manifest(role, "more", { rules: secrets }));
    await heals(
      roleBinding("more", "Role"),
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
  const webhook = {
    ...{ name, admissionReviewVersions: ["v1"], sideEffects: "None", failurePolicy: "Fail" },
    clientConfig: { service: { name: "absent", namespace } },
    namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
    rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["*"], resources: ["configmaps"] }],
  };
  await client.create({ ...configuration, metadata: { name }, webhooks: [webhook] });
  await heals(cluster.configMap("webhook", {}), `webhook ${name}`, () => client.delete(configuration, name));
});

it("an aggregated API without an endpoint", async () => {
  const group = `${namespace}.example.org`;
  const service = { apiVersion: "apiregistration.k8s.io/v1", kind: "APIService" };
  const priorities = { groupPriorityMinimum: 1_000, versionPriority: 10 };
  const absent = { service: { name: "absent", namespace }, insecureSkipTLSVerify: true };
  const spec = { group, version: "v1", ...absent, ...priorities };
  await client.create({ ...service, metadata: { name: `v1.${group}` }, spec });
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

import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { KubeConfig } from "@kubernetes/client-node";
import { beforeAll, describe, expect, it } from "vitest";
import {
  KubernetesClient,
  known,
  type LiveObject,
  type Manifest,
  type ResourceType,
} from "../../../providers/kubernetes/client";
import { eventually } from "../../../src/testing/eventually";
import { tokenOf } from "../../e2e/objects";
import { CONFIG_MAP, NAMESPACE, TestCluster } from "./test-cluster";

const cluster = TestCluster.use();
const { client } = cluster;

const make = (name: string, data: Record<string, string> = {}) => client.create(cluster.configMap(name, data));
const refusal = (request: Promise<unknown>) =>
  request.then(
    () => undefined,
    (error: unknown) => error,
  );

/** A client that logs in with a token, and works in the test's namespace only as far as it is allowed to. */
async function clientWithToken(token: string): Promise<KubernetesClient> {
  const config = new KubeConfig();
  config.loadFromClusterAndUser(cluster.config().getCurrentCluster() as never, { name: "test", token });
  return new KubernetesClient(config);
}

describe("list", () => {
  it("returns all objects of many pages once, each with the type that lists leave out", async () => {
    const names = Array.from({ length: 1_010 }, (_, index) => `many-${index}`);
    for (let start = 0; start < names.length; start += 50) {
      await Promise.all(
        names
          .slice(start, start + 50)
          .map((name) => client.create(cluster.configMap(name, {}, { labels: { many: "1" } }))),
      );
    }
    const { items, resourceVersion } = await client.list(CONFIG_MAP, {
      namespace: cluster.namespace,
      labelSelector: "many=1",
    });
    expect(items.map(({ metadata }) => metadata.name).sort()).toEqual(names.sort());
    expect(items.every(({ apiVersion, kind }) => apiVersion === "v1" && kind === "ConfigMap")).toBe(true);
    expect(resourceVersion).toMatch(/^\d+$/);
  });

  it("is narrowed by a label selector, and by a namespace", async () => {
    await client.create(cluster.configMap("labelled", {}, { labels: { only: "this" } }));
    const list = async (namespace: string) =>
      (await client.list(CONFIG_MAP, { namespace, labelSelector: "only=this" })).items.map(
        ({ metadata }) => metadata.name,
      );
    expect(await list(cluster.namespace)).toEqual(["labelled"]);
    expect(await list("default")).toEqual([]);
  });

  it("is empty where there is nothing, also of metadata alone, for which the API server says `null`", async () => {
    const none = { namespace: cluster.namespace, labelSelector: "there=is-none" };
    const found: unknown[] = [];
    for await (const { items } of client.pages(CONFIG_MAP, { ...none, metadataOnly: true })) found.push(items);
    expect(found).toEqual([[]]);
    expect((await client.list(CONFIG_MAP, none)).items).toEqual([]);
  });
});

describe("discovery", () => {
  it("finds where a kind is served", async () => {
    expect(await client.resourceType("rbac.authorization.k8s.io/v1", "RoleBinding")).toEqual({
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "RoleBinding",
      plural: "rolebindings",
      namespaced: true,
    });
  });

  it.each([
    ["v1", "Gadget"],
    ["no.such.group/v1", "Gadget"],
  ])("of what is not served (%s %s) is an error of its own, until a CRD is installed", async (apiVersion, kind) => {
    expect(await refusal(client.resourceType(apiVersion, kind))).toMatchObject({
      status: 404,
      reason: "UnknownKind",
      errorClass: "terminal",
    });
  });
});

it("delete goes over the connections that are there, as all requests do", async () => {
  const fresh = new KubernetesClient(cluster.config());
  const names = ["one", "another", "a third"].map((name) => `deleted-${name.replace(" ", "-")}`);
  for (const name of names) await make(name);
  for (const name of names) await known(fresh.get(CONFIG_MAP, name, cluster.namespace));
  let connections = 0;
  const onConnected = () => connections++;
  subscribe("undici:client:connected", onConnected);
  for (const name of names) await fresh.delete(CONFIG_MAP, name, cluster.namespace);
  unsubscribe("undici:client:connected", onConnected);
  await fresh.close();
  expect(connections).toBe(0);
});

describe("what is not there", () => {
  it("is undefined when it is got or deleted", async () => {
    expect(await known(client.get(CONFIG_MAP, "missing", cluster.namespace))).toBeUndefined();
    expect(await client.delete(CONFIG_MAP, "missing", cluster.namespace)).toBeUndefined();
  });

  it("is an error when it is patched", async () => {
    expect(await refusal(client.mergePatch(CONFIG_MAP, "missing", cluster.namespace, {}))).toMatchObject({
      status: 404,
      reason: "NotFound",
      message: 'configmaps "missing" not found',
    });
  });
});

describe("an apply of what is new", () => {
  const metadata = (name: string) => ({ name, namespace: cluster.namespace });
  const container = { name: "c", image: "x" };
  it.each<[string, () => Manifest]>([
    ["a ConfigMap", () => cluster.configMap("new", { a: "1" })],
    ["a Secret", () => ({ apiVersion: "v1", kind: "Secret", metadata: metadata("new"), stringData: { a: "1" } })],
    [
      "a Service",
      () => ({ apiVersion: "v1", kind: "Service", metadata: metadata("new"), spec: { ports: [{ port: 80 }] } }),
    ],
    [
      "a Pod",
      () => ({
        apiVersion: "v1",
        kind: "Pod",
        metadata: metadata("new"),
        spec: { automountServiceAccountToken: false, containers: [container] },
      }),
    ],
    [
      "a RoleBinding",
      () => ({
        apiVersion: "rbac.authorization.k8s.io/v1",
        kind: "RoleBinding",
        metadata: metadata("new"),
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "view" },
      }),
    ],
    ["a Namespace", () => ({ apiVersion: "v1", kind: "Namespace", metadata: { name: `${cluster.namespace}-new` } })],
    [
      "a PersistentVolumeClaim",
      () => ({
        apiVersion: "v1",
        kind: "PersistentVolumeClaim",
        metadata: metadata("new"),
        spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Mi" } } },
      }),
    ],
    [
      "a CustomResourceDefinition",
      () => {
        const group = `${cluster.namespace}.example.com`;
        const schema = { openAPIV3Schema: { type: "object" } };
        return {
          apiVersion: "apiextensions.k8s.io/v1",
          kind: "CustomResourceDefinition",
          metadata: { name: `news.${group}` },
          spec: {
            group,
            names: { kind: "New", plural: "news", singular: "new", listKind: "NewList" },
            scope: "Namespaced",
            versions: [{ name: "v1", served: true, storage: true, schema }],
          },
        };
      },
    ],
  ])("creates %s with the managers of any apply, and leaves one that is there as it is", async (_, manifest) => {
    const labelled = (value: string) => {
      const { metadata, ...rest } = manifest();
      return { ...rest, metadata: { ...metadata, labels: { value } } };
    };
    const made = await client.applyNew(labelled("ours"), { fieldManager: "one" });
    expect(made.metadata.managedFields).toMatchObject([{ manager: "one", operation: "Apply" }]);
    const { name, namespace } = made.metadata;
    const uid = made.metadata.uid;
    expect(await refusal(client.applyNew(labelled("theirs"), { fieldManager: "two" }))).toMatchObject({ status: 409 });
    const live = await known(client.get(made, name, namespace));
    expect(live?.metadata).toMatchObject({ uid, labels: { value: "ours" } });
    expect(live?.metadata.managedFields?.some(({ manager }) => manager === "two")).toBe(false);
    await client.delete(made, name, namespace);
  });

  it("leaves one that is ending, and one with other values of immutable fields", async () => {
    const manifest = cluster.configMap("kept", { a: "1" }, { finalizers: ["example.com/kept"] });
    const immutable = { ...manifest, immutable: true };
    const { metadata } = await client.create(immutable);
    expect(await refusal(client.applyNew(cluster.configMap("kept", { a: "2" })))).toMatchObject({ status: 409 });
    await client.delete(CONFIG_MAP, "kept", cluster.namespace);
    expect(await refusal(client.applyNew(cluster.configMap("kept", { a: "2" })))).toMatchObject({ status: 409 });
    expect(await cluster.find("kept")).toMatchObject({ data: { a: "1" }, metadata: { uid: metadata.uid } });
    await cluster.edit("kept", { metadata: { finalizers: null } });
  });
});

describe("a conflict", () => {
  it("with an object of that name can be tried again", async () => {
    await make("existing");
    expect(await refusal(make("existing"))).toMatchObject({
      status: 409,
      reason: "AlreadyExists",
      errorClass: "retryable",
    });
  });

  it("with a change that was made meanwhile can be tried again", async () => {
    const { metadata } = await make("changing");
    await client.mergePatch(CONFIG_MAP, "changing", cluster.namespace, { data: { a: "1" } });
    const outdated = { metadata: { resourceVersion: metadata.resourceVersion }, data: { a: "2" } };
    expect(await refusal(client.mergePatch(CONFIG_MAP, "changing", cluster.namespace, outdated))).toMatchObject({
      status: 409,
      reason: "Conflict",
      errorClass: "retryable",
    });
  });

  it("with the UID of a successor keeps that from being deleted", async () => {
    await make("guarded");
    const deleting = client.delete(CONFIG_MAP, "guarded", cluster.namespace, { uid: "uid-of-predecessor" });
    expect(await refusal(deleting)).toMatchObject({ status: 409 });
    expect(await cluster.find("guarded")).toHaveProperty("metadata.uid");
  });
});

it("a text of any characters is applied as it is", async () => {
  const text = "\u0000\u001b\u007f\u0085\u009b\u2028\u202e\ufeff\ufffe\uffff 🇨🇦 \\u0041 \"'";
  await client.apply(cluster.configMap("characters", { text }));
  expect((await cluster.find("characters"))?.data).toEqual({ text });
});

describe("a refusal", () => {
  it("of an invalid object is terminal and says what is wrong", async () => {
    expect(await refusal(make("Bad_Name"))).toMatchObject({
      status: 422,
      reason: "Invalid",
      errorClass: "terminal",
      message: expect.stringContaining("metadata.name"),
    });
  });

  it("for lack of permission can be tried again, as it may be granted, and names what was not allowed", async () => {
    const metadata = { name: "powerless", namespace: cluster.namespace };
    await client.create({ apiVersion: "v1", kind: "ServiceAccount", metadata });
    const powerless = await clientWithToken(await tokenOf(cluster.namespace, "powerless"));
    expect(await refusal(powerless.list(CONFIG_MAP))).toMatchObject({
      status: 403,
      reason: "Forbidden",
      errorClass: "retryable",
      message: expect.stringMatching(/system:serviceaccount:.*:powerless" cannot list resource "configmaps"/),
    });
    await powerless.close();
  });

  it("to hand out rights that one does not have can be tried again, too", async () => {
    const [name, namespace] = ["binder", cluster.namespace];
    const rbac = "rbac.authorization.k8s.io";
    const post = (kind: string, plural: string, body: object) =>
      client.json("POST", `/apis/${rbac}/v1/namespaces/${namespace}/${plural}`, {
        body: { apiVersion: `${rbac}/v1`, kind, metadata: { name }, ...body },
      });
    await client.create({
      apiVersion: "v1",
      kind: "ServiceAccount",
      metadata: { name, namespace },
    });
    await post("Role", "roles", {
      rules: [{ apiGroups: [rbac], resources: ["rolebindings"], verbs: ["get", "create", "patch"] }],
    });
    await post("RoleBinding", "rolebindings", {
      roleRef: { apiGroup: rbac, kind: "Role", name },
      subjects: [{ kind: "ServiceAccount", name, namespace }],
    });
    const binder = await clientWithToken(await tokenOf(namespace, name));
    const binding = (role: string) => ({
      apiVersion: `${rbac}/v1`,
      kind: "RoleBinding",
      metadata: { name: "escalation", namespace },
      roleRef: { apiGroup: rbac, kind: "ClusterRole", name: role },
    });
    // The authorizer learns of the new binding a moment later.
    await expect
      .poll(async () => String(await refusal(binder.create(binding("admin")))))
      .toMatch(/is attempting to grant RBAC permissions not currently held/);
    expect(await refusal(binder.create(binding("admin")))).toMatchObject({
      status: 403,
      errorClass: "retryable",
    });
    await binder.close();
  });

  it("by admission is terminal", async () => {
    const namespace = `${cluster.namespace}-restricted`;
    const labels = { "pod-security.kubernetes.io/enforce": "restricted" };
    await client.create({ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace, labels } });
    const metadata = { name: "root", namespace };
    const pod = { apiVersion: "v1", kind: "Pod", metadata, spec: { containers: [{ name: "a", image: "a" }] } };
    await expect
      .poll(() => refusal(client.create(pod)))
      .toMatchObject({ status: 403, errorClass: "terminal", message: expect.stringContaining("violates PodSecurity") });
    await client.delete(NAMESPACE, namespace);
  });

  it("of credentials can be tried again, as they may be rotated", async () => {
    const unknown = await clientWithToken("no-such-token");
    expect(await refusal(unknown.list(CONFIG_MAP))).toMatchObject({ status: 401, errorClass: "retryable" });
    await unknown.close();
  });

  it("of a Pod whose ServiceAccount is not there yet can be tried again", async () => {
    const pod = {
      ...{ apiVersion: "v1", kind: "Pod", metadata: { name: "early", namespace: cluster.namespace } },
      spec: { serviceAccountName: "late", containers: [{ name: "a", image: "a" }] },
    };
    expect(await refusal(client.create(pod))).toMatchObject({
      status: 403,
      errorClass: "retryable",
      message: expect.stringContaining('serviceaccount "late" not found'),
    });
  });

  it("to make something in a namespace that is on its way out can be tried again", async () => {
    const name = `${cluster.namespace}-leaving`;
    await client.create({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
    const held = cluster.configMap("held", {}, { namespace: name, finalizers: ["example.com/held"] });
    await client.create(held);
    await client.delete(NAMESPACE, name);
    expect(await refusal(client.create(cluster.configMap("late", {}, { namespace: name })))).toMatchObject({
      status: 403,
      errorClass: "retryable",
      message: expect.stringContaining("is being terminated"),
    });
    await client.mergePatch(CONFIG_MAP, "held", name, { metadata: { finalizers: null } });
  });
});

describe("a server that does not answer", () => {
  it("is named in an error that can be tried again", async () => {
    const config = cluster.config();
    config.clusters = config.clusters.map((entry) => ({ ...entry, server: "https://127.0.0.1:1" }));
    const unreachable = new KubernetesClient(config);
    expect(await refusal(known(unreachable.get(NAMESPACE, "default")))).toMatchObject({
      reason: "Unreachable",
      errorClass: "retryable",
      message: expect.stringMatching(/^the API server at https:\/\/127\.0\.0\.1:1 did not answer: .*ECONNREFUSED/),
    });
    await unreachable.close();
  });

  it("is not believed when it shows a certificate of another authority", async () => {
    const config = cluster.config();
    config.clusters = config.clusters.map(({ name, server }) => ({ name, server, skipTLSVerify: false }));
    const suspicious = new KubernetesClient(config);
    expect(await refusal(known(suspicious.get(NAMESPACE, "default")))).toMatchObject({ reason: "Unreachable" });
    await suspicious.close();
  });
});

describe("a successor of the same name", () => {
  const CRD: ResourceType = {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
    namespaced: false,
  };
  const plural = "successors";
  const type: ResourceType = { apiVersion: "test.kindstack.dev/v1", kind: "Successor", plural, namespaced: true };

  beforeAll(async () => {
    const free = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
    const schema = { openAPIV3Schema: { type: "object", properties: { status: free } } };
    const name = `${plural}.test.kindstack.dev`;
    await client.create({
      apiVersion: CRD.apiVersion,
      kind: CRD.kind,
      metadata: { name },
      spec: {
        group: "test.kindstack.dev",
        scope: "Namespaced",
        names: { plural, singular: "successor", kind: type.kind },
        versions: [{ name: "v1", served: true, storage: true, schema, subresources: { status: {} } }],
      },
    });
    await eventually(() => client.list(type, { namespace: cluster.namespace }));
    return () => client.delete(CRD, name);
  });

  const manifest = (name: string) => ({
    apiVersion: type.apiVersion,
    kind: type.kind,
    metadata: { name, namespace: cluster.namespace },
  });
  const succeeded = async (name: string) => {
    const first = await client.create(manifest(name));
    await client.delete(type, name, cluster.namespace);
    await client.create(manifest(name));
    return first;
  };

  it("does not get the status of the first", async () => {
    const first = await succeeded("told");
    const told = await refusal(client.replaceStatus(first, { made: "everything" }));
    expect(told).toMatchObject({ status: 409, message: "Successor told is another object by now" });
    expect((await known(client.get(type, "told", cluster.namespace)))?.status).toBeUndefined();
  });

  it("does not get what is applied to the first, which is as much as a conflict", async () => {
    const { uid } = (await succeeded("held")).metadata;
    const { metadata, ...rest } = manifest("held");
    const held = { ...rest, metadata: { ...metadata, uid, finalizers: ["example.com/held"] } };
    expect(await refusal(client.apply(held))).toMatchObject({ status: 409 });
    expect((await known(client.get(type, "held", cluster.namespace)))?.metadata.finalizers).toBeUndefined();
  });

  it("gets its own status, in place of all that it was", async () => {
    const object = await client.create(manifest("own"));
    await client.replaceStatus(object, { first: 1 });
    expect(await client.replaceStatus(object, { second: 2 })).toMatchObject({ status: { second: 2 } });
    expect((await known(client.get(type, "own", cluster.namespace)))?.status).toEqual({ second: 2 });
  });
});

describe("apply", () => {
  it("tells whether it made the object", async () => {
    expect(await client.apply(cluster.configMap("applied"))).toMatchObject({ created: true });
    expect(await client.apply(cluster.configMap("applied"))).toMatchObject({ created: false });
  });

  it("makes nothing in a dry run, but says what would be refused", async () => {
    await client.apply(cluster.configMap("dry"), { dryRun: true });
    expect(await cluster.find("dry")).toBeUndefined();
    const invalid = client.apply(cluster.configMap("Bad_Name"), { dryRun: true });
    expect(await refusal(invalid)).toMatchObject({ status: 422 });
  });
});

describe("watch", () => {
  it("tells of what happens after the given version, until it is aborted", async () => {
    const { resourceVersion } = await client.list(CONFIG_MAP, {
      namespace: cluster.namespace,
      labelSelector: "seen=1",
    });
    const abort = new AbortController();
    const stream = await client.watch(CONFIG_MAP, {
      resourceVersion,
      timeoutSeconds: 60,
      namespace: cluster.namespace,
      labelSelector: "seen=1",
      signal: abort.signal,
    });
    await client.create(cluster.configMap("seen", {}, { labels: { seen: "1" } }));
    await client.delete(CONFIG_MAP, "seen", cluster.namespace);
    const events: string[] = [];
    const reading = (async () => {
      let text = "";
      for await (const chunk of stream) {
        text += Buffer.from(chunk).toString();
        const lines = text.split("\n");
        text = lines.pop() ?? "";
        for (const { type, object } of lines.map((line) => JSON.parse(line) as { type: string; object: LiveObject })) {
          events.push(`${type} ${object.metadata.name}`);
        }
        if (events.length === 2) abort.abort();
      }
    })();
    await expect(reading).rejects.toMatchObject({ name: "AbortError" });
    expect(events).toEqual(["ADDED seen", "DELETED seen"]);
  });

  it("of what may not be watched is refused with the server's words", async () => {
    const type = await client.resourceType("authorization.k8s.io/v1", "SubjectAccessReview");
    const watching = client.watch(type, {
      resourceVersion: "0",
      timeoutSeconds: 1,
      signal: new AbortController().signal,
    });
    expect(await refusal(watching)).toMatchObject({ status: 405, errorClass: "terminal" });
  });
});

import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { beforeAll, describe, expect, it } from "vitest";
import { KubernetesClient, known, type LiveObject, type Manifest } from "../../../providers/kubernetes/client";
import { eventually } from "../../../src/testing/eventually";
import { retryable } from "../failures";
import { CONFIG_MAP, CRD, definition, HELD, NAMESPACE, POD, ROLE_BINDING, TestCluster } from "./test-cluster";

const cluster = TestCluster.use();
const { client } = cluster;

const make = (name: string, data: Record<string, string> = {}) => client.create(cluster.configMap(name, data));
const refusal = (request: Promise<unknown>) =>
  request.then(
    () => undefined,
    (error: unknown) => error,
  );

describe("list", () => {
  it("returns all objects of many pages once, each with the type that lists leave out", async () => {
    const names = Array.from({ length: 1_010 }, (_, index) => `many-${index}`);
    const many = names.map((name) => cluster.configMap(name, {}, { labels: { many: "1" } }));
    for (let start = 0; start < many.length; start += 50) {
      await Promise.all(many.slice(start, start + 50).map((manifest) => client.create(manifest)));
    }
    const options = { namespace: cluster.namespace, labelSelector: "many=1" };
    const { items, resourceVersion } = await client.list(CONFIG_MAP, options);
    expect(items.map(({ metadata }) => metadata.name).sort()).toEqual(names.sort());
    expect(items.every(({ apiVersion, kind }) => apiVersion === "v1" && kind === "ConfigMap")).toBe(true);
    expect(resourceVersion).toMatch(/^\d+$/);
  });

  it("is narrowed by a label selector, and by a namespace", async () => {
    await client.create(cluster.configMap("labelled", {}, { labels: { only: "this" } }));
    const list = async (namespace: string) =>
      (await client.list(CONFIG_MAP, { namespace, labelSelector: "only=this" })).items;
    expect(await list(cluster.namespace)).toMatchObject([{ metadata: { name: "labelled" } }]);
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
    expect(await client.resourceType(ROLE_BINDING.apiVersion, "RoleBinding")).toEqual(ROLE_BINDING);
  });

  it.each([
    ["v1", "Gadget"],
    ["no.such.group/v1", "Gadget"],
  ])("of what is not served (%s %s) is an error of its own, until a CRD is installed", async (apiVersion, kind) => {
    const unknown = { status: 404, reason: "UnknownKind", errorClass: "terminal" };
    expect(await refusal(client.resourceType(apiVersion, kind))).toMatchObject(unknown);
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
    const missing = { status: 404, reason: "NotFound", message: 'configmaps "missing" not found' };
    expect(await refusal(client.mergePatch(CONFIG_MAP, "missing", cluster.namespace, {}))).toMatchObject(missing);
  });
});

describe("an apply of what is new", () => {
  const type = (kind: string) => ({ apiVersion: "v1", kind });
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "view" };
  const containers = [{ name: "c", image: "x" }];
  const claim = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Mi" } } };
  it.each<[string, () => Manifest]>([
    ["a ConfigMap", () => cluster.configMap("new", { a: "1" })],
    ["a Secret", () => cluster.manifest(type("Secret"), "new", { stringData: { a: "1" } })],
    ["a Service", () => cluster.manifest(type("Service"), "new", { spec: { ports: [{ port: 80 }] } })],
    ["a Pod", () => cluster.manifest(POD, "new", { spec: { automountServiceAccountToken: false, containers } })],
    ["a RoleBinding", () => cluster.manifest(ROLE_BINDING, "new", { roleRef })],
    ["a Namespace", () => ({ ...type("Namespace"), metadata: { name: `${cluster.namespace}-new` } })],
    ["a PersistentVolumeClaim", () => cluster.manifest(type("PersistentVolumeClaim"), "new", { spec: claim })],
    ["a CustomResourceDefinition", () => definition(`${cluster.namespace}.example.com`, "New")],
  ])("creates %s with the managers of any apply, and leaves one that is there as it is", async (_, manifest) => {
    const labelled = (value: string) => {
      const { metadata, ...rest } = manifest();
      return { ...rest, metadata: { ...metadata, labels: { value } } };
    };
    const made = await client.applyNew(labelled("ours"), { fieldManager: "one" });
    expect(made.metadata.managedFields).toMatchObject([{ manager: "one", operation: "Apply" }]);
    const { name, namespace, uid } = made.metadata;
    expect(await refusal(client.applyNew(labelled("theirs"), { fieldManager: "two" }))).toMatchObject({ status: 409 });
    const live = await known(client.get(made, name, namespace));
    expect(live?.metadata).toMatchObject({ uid, labels: { value: "ours" } });
    expect(live?.metadata.managedFields?.some(({ manager }) => manager === "two")).toBe(false);
    await client.delete(made, name, namespace);
  });

  it("leaves one that is ending, and one with other values of immutable fields", async () => {
    const { metadata } = await client.create({ ...cluster.configMap("kept", { a: "1" }, HELD), immutable: true });
    expect(await refusal(client.applyNew(cluster.configMap("kept", { a: "2" })))).toMatchObject({ status: 409 });
    await client.delete(CONFIG_MAP, "kept", cluster.namespace);
    expect(await refusal(client.applyNew(cluster.configMap("kept", { a: "2" })))).toMatchObject({ status: 409 });
    expect(await cluster.find("kept")).toMatchObject({ data: { a: "1" }, metadata: { uid: metadata.uid } });
    await cluster.edit("kept", { metadata: { finalizers: null } });
  });
});

describe("a conflict", () => {
  const retried = (reason: string) => ({ status: 409, reason, errorClass: "retryable" });

  it("with an object of that name can be tried again", async () => {
    await make("existing");
    expect(await refusal(make("existing"))).toMatchObject(retried("AlreadyExists"));
  });

  it("with a change that was made meanwhile can be tried again", async () => {
    const { metadata } = await make("changing");
    const patch = (body: object) => client.mergePatch(CONFIG_MAP, "changing", cluster.namespace, body);
    await patch({ data: { a: "1" } });
    const { resourceVersion } = metadata;
    expect(await refusal(patch({ metadata: { resourceVersion }, data: { a: "2" } }))).toMatchObject(
      retried("Conflict"),
    );
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

/* `refusals.integration.test.ts` has those that time heals. */
describe("a refusal", () => {
  it("of an invalid object is terminal and says what is wrong", async () => {
    const invalid = { status: 422, reason: "Invalid", errorClass: "terminal" };
    const message = expect.stringMatching(/ConfigMap "Bad_Name" is invalid: metadata.name: Invalid value/);
    expect(await refusal(make("Bad_Name"))).toMatchObject({ ...invalid, message });
  });

  it("by admission is terminal", async () => {
    const namespace = `${cluster.namespace}-restricted`;
    const labels = { "pod-security.kubernetes.io/enforce": "restricted" };
    await client.create({ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace, labels } });
    const message = expect.stringContaining("violates PodSecurity");
    await expect
      .poll(() => refusal(client.create(cluster.pod("root", "a", { namespace }))))
      .toMatchObject({ status: 403, errorClass: "terminal", message });
    await client.delete(NAMESPACE, namespace);
  });

  it("of credentials can be tried again, as they may be rotated", async () => {
    const unknown = client.ofToken("no-such-token");
    expect(await refusal(unknown.list(CONFIG_MAP))).toMatchObject({ status: 401, errorClass: "retryable" });
    await unknown.close();
  });
});

describe("a server that does not answer", () => {
  it("is named in an error that can be tried again", async () => {
    const config = cluster.config();
    config.clusters = config.clusters.map((entry) => ({ ...entry, server: "https://127.0.0.1:1" }));
    const unreachable = new KubernetesClient(config);
    const message = /^the API server at https:\/\/127\.0\.0\.1:1 did not answer: .*ECONNREFUSED/;
    await expect(known(unreachable.get(NAMESPACE, "default"))).rejects.toEqual(retryable("Unreachable", message));
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
  const type = { apiVersion: "test.kindstack.dev/v1", kind: "Successor", plural: "successors", namespaced: true };
  const manifest = (name: string) => cluster.manifest(type, name);

  beforeAll(async () => {
    const crd = await client.create(definition("test.kindstack.dev", type.kind));
    await eventually(() => client.list(type, { namespace: cluster.namespace }));
    return () => client.delete(CRD, crd.metadata.name);
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
    expect((await cluster.find("told", type))?.status).toBeUndefined();
  });

  it("does not get what is applied to the first, which is as much as a conflict", async () => {
    const { uid } = (await succeeded("held")).metadata;
    const applying = client.apply(cluster.manifest(type, "held", {}, { uid, ...HELD }));
    await expect(applying).rejects.toMatchObject({ status: 409, message: "Successor held is another object by now" });
    expect((await cluster.find("held", type))?.metadata.finalizers).toBeUndefined();
  });

  it("gets its own status, in place of all that it was", async () => {
    const object = await client.create(manifest("own"));
    await client.replaceStatus(object, { first: 1 });
    expect(await client.replaceStatus(object, { second: 2 })).toMatchObject({ status: { second: 2 } });
    expect((await cluster.find("own", type))?.status).toEqual({ second: 2 });
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
    const options = { namespace: cluster.namespace, labelSelector: "seen=1" };
    const { resourceVersion } = await client.list(CONFIG_MAP, options);
    const abort = new AbortController();
    const { signal } = abort;
    const stream = await client.watch(CONFIG_MAP, { ...options, resourceVersion, timeoutSeconds: 60, signal });
    await client.create(cluster.configMap("seen", {}, { labels: { seen: "1" } }));
    await client.delete(CONFIG_MAP, "seen", cluster.namespace);
    const events: string[] = [];
    const readUntilAborted = async () => {
      let text = "";
      for await (const chunk of stream) {
        const lines = (text + Buffer.from(chunk).toString()).split("\n");
        text = lines.pop() ?? "";
        for (const { type, object } of lines.map((line) => JSON.parse(line) as { type: string; object: LiveObject })) {
          events.push(`${type} ${object.metadata.name}`);
        }
        if (events.length === 2) abort.abort();
      }
    };
    await expect(readUntilAborted()).rejects.toMatchObject({ name: "AbortError" });
    expect(events).toEqual(["ADDED seen", "DELETED seen"]);
  });

  it("of what may not be watched is refused with the server's words", async () => {
    const type = await client.resourceType("authorization.k8s.io/v1", "SubjectAccessReview");
    const { signal } = new AbortController();
    const watching = client.watch(type, { resourceVersion: "0", timeoutSeconds: 1, signal });
    expect(await refusal(watching)).toMatchObject({ status: 405, errorClass: "terminal" });
  });
});

import { randomUUID } from "node:crypto";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import {
  KubernetesClient,
  known,
  type LiveObject,
  type Manifest,
  type ResourceType,
} from "../../../providers/kubernetes/client";
import { provider } from "../../../providers/kubernetes/object";
import type { ObjectInputs, ObjectOutputs } from "../../../providers/kubernetes/object-inputs";
import { CREATED_ANNOTATION, OWNER_ANNOTATION, OWNER_UID_LABEL } from "../../../providers/kubernetes/ownership";
import type { ProviderContext } from "../../../providers/provider";
import { RETAINED } from "../../../providers/resource-options";
import { acme, globex } from "../../objects";
import { testContext } from "../test-context";
import { CONFIG_MAP, NAMESPACE, ROLE_BINDING, TestCluster } from "./test-cluster";

const cluster = TestCluster.use();

const inputs = (manifest: Manifest, owner = acme): ObjectInputs => ({ manifest, owner });
const create = async (manifest: Manifest, owner = acme, context?: ProviderContext) =>
  (await provider.create(inputs(manifest, owner), context)).outs;
const update = async (outs: ObjectOutputs, manifest: Manifest, owner = acme, context?: ProviderContext) =>
  (await provider.update("id", outs, inputs(manifest, owner), context)).outs;
const read = async (outs: ObjectOutputs) => (await provider.read("id", outs)).props;
const remove = (outs: ObjectOutputs, context?: ProviderContext) => provider.delete("id", outs, context);
/** As an operator calls. */
const operator = testContext();

describe("create", () => {
  it("creates the object with its owner, and records what it created", async () => {
    const manifest = cluster.configMap("made", { a: "1" }, { labels: { team: "acme" } });
    const { id, outs } = await provider.create(inputs(manifest));
    const live = await cluster.find("made");
    expect(id).toBe(`/ConfigMap/${cluster.namespace}/made`);
    expect(live).toMatchObject({
      data: { a: "1" },
      metadata: {
        labels: { team: "acme", [OWNER_UID_LABEL]: acme.uid },
        annotations: { [OWNER_ANNOTATION]: acme.description, [CREATED_ANNOTATION]: "true" },
      },
    });
    const { uid, resourceVersion } = live?.metadata ?? {};
    expect(outs).toMatchObject({ manifest, owner: acme, uid, resourceVersion, created: true, drifted: false });
  });

  it("takes one request where nothing has the name, and reads what has it", async () => {
    const requests = vi.spyOn(KubernetesClient.prototype, "send");
    onTestFinished(() => requests.mockRestore());
    const methods = () => requests.mock.calls.splice(0).map(([method]) => method);
    await create(cluster.configMap("unread", { a: "1" }));
    expect(methods()).toEqual(["PATCH"]);
    await create(cluster.configMap("unread", { a: "2" }));
    expect(methods()).toEqual(["PATCH", "GET", "PATCH"]);
    expect(await cluster.find("unread")).toMatchObject({ data: { a: "2" } });
  });

  it("leaves what another owner has made between its look and its write as it is", async () => {
    const taken = () => create(cluster.configMap("overtaken-create", { a: "theirs" }), globex);
    const held = await create(cluster.configMap("overtaken-create", {}, { finalizers: ["example.com/held"] }));
    await cluster.client.delete(CONFIG_MAP, "overtaken-create", cluster.namespace);
    const original = KubernetesClient.prototype.applyNew;
    const write = vi.spyOn(KubernetesClient.prototype, "applyNew");
    onTestFinished(() => write.mockRestore());
    write.mockImplementationOnce(original); // is refused: the predecessor is there
    write.mockImplementationOnce(async function (this: KubernetesClient, ...given) {
      await taken();
      return original.apply(this, given);
    });
    const creating = create(cluster.configMap("overtaken-create", { a: "ours" }));
    creating.catch(() => {});
    await expect.poll(() => write.mock.calls.length).toBeGreaterThan(0);
    await cluster.edit("overtaken-create", { metadata: { finalizers: null } });
    await expect(creating).rejects.toMatchObject({ reason: "Conflict" });
    const live = await cluster.find("overtaken-create");
    expect(live).toMatchObject({ data: { a: "theirs" }, metadata: { labels: { [OWNER_UID_LABEL]: globex.uid } } });
    expect(live?.metadata.uid).not.toBe(held.uid);
  });

  it("that is repeated after a crash leaves one object, and it is still one that was created", async () => {
    const first = await create(cluster.configMap("repeated", { a: "1" }));
    const second = await create(cluster.configMap("repeated", { a: "1" }));
    expect(second).toEqual(first);
    await remove(second);
    expect(await cluster.find("repeated")).toBeUndefined();
  });

  it("waits until a predecessor of that name is gone, and makes a new one", async () => {
    const held = await create(cluster.configMap("held", {}, { finalizers: ["example.com/held"] }));
    await cluster.client.delete(CONFIG_MAP, "held", cluster.namespace);
    const creating = create(cluster.configMap("held", { a: "new" }));
    await cluster.edit("held", { metadata: { finalizers: null } });
    const made = await creating;
    expect(made.uid).not.toBe(held.uid);
    expect(made.created).toBe(true);
  });

  it.each(["kube-public", "default", "kindstack-system"])("never takes the namespace %s", async (name) => {
    const before = await known(cluster.client.get(NAMESPACE, name));
    await expect(create({ apiVersion: "v1", kind: "Namespace", metadata: { name } })).rejects.toMatchObject({
      errorClass: "terminal",
      reason: "NamespaceProtected",
      message: expect.stringContaining(`"${name}" is protected`),
    });
    expect(await known(cluster.client.get(NAMESPACE, name))).toEqual(before);
  });

  it("is refused when another owner has the object, and says whose it is and what to do", async () => {
    await create(cluster.configMap("taken", { a: "1" }), globex);
    await expect(create(cluster.configMap("taken", { a: "2" }))).rejects.toMatchObject({
      errorClass: "terminal",
      reason: "Conflict",
      message:
        `ConfigMap taken belongs to ${globex.description}. Give one of them another name; if that owner is gone, ` +
        `remove the label ${OWNER_UID_LABEL} of ConfigMap taken`,
    });
    expect(await cluster.find("taken")).toMatchObject({ data: { a: "1" } });
  });

  it("takes over what a predecessor of the owner's name has left, as after a restore", async () => {
    const [before, now] = [1, 2].map(() => ({ uid: randomUUID(), description: acme.description }));
    await create(cluster.configMap("inherited", { a: "1" }), before);
    await cluster.applyAs("someone", cluster.configMap("inherited", { theirs: "1" }));
    for (const owner of [{ ...acme }, { uid: randomUUID(), description: globex.description }]) {
      await expect(create(cluster.configMap("inherited", { a: "2" }), owner)).rejects.toMatchObject({
        reason: "Conflict",
      });
    }
    const outs = await create(cluster.configMap("inherited", { a: "2" }), now);
    expect(await cluster.find("inherited")).toMatchObject({
      data: { a: "2", theirs: "1" },
      metadata: { labels: { [OWNER_UID_LABEL]: now?.uid } },
    });
    await remove(outs);
    expect(await cluster.find("inherited")).toBeUndefined(); // it was created, by the predecessor
  });

  it("leaves what was moved as its message says where it is, and the other owner adopts it", async () => {
    const outs = await create(cluster.configMap("moved", { a: "1" }), globex);
    await cluster.edit("moved", { metadata: { annotations: { [CREATED_ANNOTATION]: null } } });
    const { uid } = (await cluster.find("moved"))?.metadata ?? {};
    await remove(outs);
    const moved = await create(cluster.configMap("moved", { a: "2" }));
    expect(await cluster.find("moved")).toMatchObject({ metadata: { uid, labels: { [OWNER_UID_LABEL]: acme.uid } } });
    expect(moved.created).toBe(false);
  });
});

describe("an object that existed before", () => {
  const foreign = { labels: { theirs: "1", shared: "1" }, annotations: { note: "theirs" } };

  it("is adopted: foreign labels, annotations and data stay", async () => {
    await cluster.applyAs("someone", cluster.configMap("adopted", { theirs: "1" }, foreign));
    const outs = await create(cluster.configMap("adopted", { ours: "1" }, { labels: { mine: "1" } }));
    expect(outs.created).toBe(false);
    expect(await cluster.find("adopted")).toMatchObject({
      data: { theirs: "1", ours: "1" },
      metadata: {
        labels: { ...foreign.labels, mine: "1", [OWNER_UID_LABEL]: acme.uid },
        annotations: foreign.annotations,
      },
    });
  });

  it("is released by delete: our fields go, what others said as well stays, and so does the object", async () => {
    await cluster.applyAs("someone", cluster.configMap("released", { theirs: "1" }, foreign));
    const outs = await create(cluster.configMap("released", { ours: "1" }, { labels: { mine: "1", shared: "1" } }));
    await remove(outs);
    const live = await cluster.find("released");
    expect(live?.data).toEqual({ theirs: "1" });
    expect(live?.metadata.labels).toEqual(foreign.labels);
    expect(live?.metadata.annotations).toEqual(foreign.annotations);
    expect(live?.metadata.uid).toBe(outs.uid);
  });

  it("stays adopted when the create is repeated after a crash", async () => {
    await cluster.applyAs("someone", cluster.configMap("adopted-twice", {}));
    await create(cluster.configMap("adopted-twice", { ours: "1" }));
    expect(await create(cluster.configMap("adopted-twice", { ours: "1" }))).toMatchObject({ created: false });
  });
});

describe("update", () => {
  it("changes what changed in place and removes what is no longer wanted", async () => {
    const outs = await create(cluster.configMap("updated", { kept: "1", changed: "1", dropped: "1" }));
    const updated = await update(outs, cluster.configMap("updated", { kept: "1", changed: "2" }));
    expect((await cluster.find("updated"))?.data).toEqual({ kept: "1", changed: "2" });
    expect(updated).toMatchObject({ uid: outs.uid, created: true });
  });

  it("hands the object to a new owner who takes over the stack", async () => {
    const outs = await create(cluster.configMap("handed-over", { a: "1" }));
    await update(outs, cluster.configMap("handed-over", { a: "1" }), globex);
    expect((await cluster.find("handed-over"))?.metadata.labels).toEqual({ [OWNER_UID_LABEL]: globex.uid });
  });

  it("makes the object again when it is gone", async () => {
    const outs = await create(cluster.configMap("lost", { a: "1" }));
    await cluster.client.delete(CONFIG_MAP, "lost", cluster.namespace);
    expect(await update(outs, cluster.configMap("lost", { a: "1" }))).toMatchObject({ created: true });
  });

  it("adopts what another client created under its name, and does not delete that later", async () => {
    const outs = await create(cluster.configMap("remade", { a: "1" }));
    await cluster.client.delete(CONFIG_MAP, "remade", cluster.namespace);
    const theirs = await cluster.applyAs("someone", cluster.configMap("remade", { theirs: "1" }));
    expect(await read(outs)).toMatchObject({ drifted: true });
    const adopted = await update(outs, cluster.configMap("remade", { a: "1" }));
    expect(adopted).toMatchObject({ uid: theirs.metadata.uid, created: false });
    await remove(adopted);
    expect((await cluster.find("remade"))?.data).toEqual({ theirs: "1" });
  });

  it("is refused when another owner has created one under its name", async () => {
    const outs = await create(cluster.configMap("overtaken", { a: "1" }));
    await cluster.client.delete(CONFIG_MAP, "overtaken", cluster.namespace);
    await create(cluster.configMap("overtaken", { a: "2" }), globex);
    await expect(update(outs, cluster.configMap("overtaken", { a: "1" }))).rejects.toMatchObject({
      reason: "Conflict",
    });
  });
});

describe("read", () => {
  it("finds nothing changed in what was just made", async () => {
    const outs = await create(cluster.configMap("read", { a: "1" }));
    expect(await read(outs)).toEqual(outs);
  });

  it.each<[string, object]>([
    ["changes an applied value", { data: { a: "2" } }],
    ["removes an applied value", { data: { a: null } }],
    ["removes a label", { metadata: { labels: { team: null } } }],
    ["takes off whose it is", { metadata: { labels: { [OWNER_UID_LABEL]: null } } }],
  ])("sees drift when a user %s; the update repairs it", async (description, patch) => {
    const name = description.replaceAll(" ", "-");
    const manifest = cluster.configMap(name, { a: "1" }, { labels: { team: "acme" } });
    const outs = await create(manifest);
    await cluster.edit(name, patch);
    const drifted = (await read(outs)) as ObjectOutputs;
    expect(drifted.drifted).toBe(true);
    expect(await provider.diff("id", drifted, inputs(manifest))).toMatchObject({ changes: true });
    const repaired = await update(drifted, manifest);
    expect(await read(repaired)).toMatchObject({ drifted: false });
    expect(await cluster.find(name)).toMatchObject({
      data: { a: "1" },
      metadata: { labels: { team: "acme", [OWNER_UID_LABEL]: acme.uid } },
    });
  });

  it("sees none when a user adds something of their own", async () => {
    const outs = await create(cluster.configMap("extended", { a: "1" }));
    await cluster.edit("extended", {
      data: { b: "2" },
      metadata: { labels: { theirs: "1" }, annotations: { n: "1" } },
    });
    expect(await read(outs)).toMatchObject({ drifted: false });
  });

  it("finds nothing when the object is gone, nor when it is on its way out", async () => {
    const gone = await create(cluster.configMap("gone"));
    const leaving = await create(cluster.configMap("leaving", {}, { finalizers: ["example.com/held"] }));
    for (const name of ["gone", "leaving"]) await cluster.client.delete(CONFIG_MAP, name, cluster.namespace);
    expect(await read(gone)).toBeUndefined();
    expect((await cluster.find("leaving"))?.metadata.deletionTimestamp).toEqual(expect.any(String));
    expect(await read(leaving)).toBeUndefined();
    await cluster.edit("leaving", { metadata: { finalizers: null } });
  });

  it("sees no drift in defaults that the server fills in, nor in a status that controllers write", async () => {
    const manifest = {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "web", namespace: cluster.namespace },
      spec: {
        replicas: 0,
        selector: { matchLabels: { app: "web" } },
        template: { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "web", image: "web:1" }] } },
      },
    };
    const outs = await create(manifest);
    const type: ResourceType = await cluster.client.resourceType("apps/v1", "Deployment");
    await expect
      .poll(async () => (await known(cluster.client.get(type, "web", cluster.namespace)))?.status)
      .toMatchObject({ observedGeneration: 1 });
    expect(await read(outs)).toMatchObject({ drifted: false });
  });
});

describe("delete", () => {
  it("deletes what was created", async () => {
    await remove(await create(cluster.configMap("deleted")));
    expect(await cluster.find("deleted")).toBeUndefined();
  });

  it("succeeds when there is nothing left", async () => {
    const outs = await create(cluster.configMap("deleted-twice"));
    await remove(outs);
    await expect(remove(outs)).resolves.toBeUndefined();
  });

  it("deletes what was created also when a user took the owner's label off", async () => {
    const outs = await create(cluster.configMap("unlabelled"));
    const labels = { [OWNER_UID_LABEL]: null };
    await cluster.client.mergePatch(CONFIG_MAP, "unlabelled", cluster.namespace, { metadata: { labels } });
    await remove(outs);
    expect(await cluster.find("unlabelled")).toBeUndefined();
  });

  it("leaves alone what another client made under that name", async () => {
    const outs = await create(cluster.configMap("successor", { a: "1" }));
    await cluster.client.delete(CONFIG_MAP, "successor", cluster.namespace);
    await cluster.applyAs("someone", cluster.configMap("successor", { theirs: "1" }));
    await remove(outs);
    expect((await cluster.find("successor"))?.data).toEqual({ theirs: "1" });
  });

  it("returns when a namespace is really gone, with all that is in it", async () => {
    const name = `${cluster.namespace}-inner`;
    const outs = await create({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
    await cluster.client.create({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "a", namespace: name },
    });
    await remove(outs);
    expect(await known(cluster.client.get(NAMESPACE, name))).toBeUndefined();
  });

  it("does not wait for an object that may take its time", async () => {
    const manifest = cluster.configMap("slow", { a: "1" });
    const held = { ...manifest, metadata: { ...manifest.metadata, finalizers: ["test.kindstack.dev/slow"] } };
    const { outs } = await provider.create({ ...inputs(held), awaitDeletion: false });
    await remove(outs);
    expect((await cluster.find("slow"))?.metadata.deletionTimestamp).toEqual(expect.any(String));
    await cluster.client.mergePatch(CONFIG_MAP, "slow", cluster.namespace, { metadata: { finalizers: null } });
  });
});

it("retainOnDelete leaves the object, without the marks of its owner", async () => {
  const inputs = { manifest: cluster.configMap("retained", { a: "1" }), owner: acme, [RETAINED]: true };
  const { id, outs } = await provider.create(inputs);
  await provider.delete(id, outs);
  const live = await cluster.find("retained");
  expect(live?.data).toEqual({ a: "1" });
  expect(live?.metadata.labels).toBeUndefined();
});

describe("where it may not wait", () => {
  const held = { finalizers: ["example.com/held"] };
  const reference = (name: string, uid: unknown) => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, namespace: cluster.namespace, uid },
  });

  it("a deletion that is accepted and not done is told at once, with what keeps it", async () => {
    const outs = await create(cluster.configMap("deleting", {}, held));
    await expect(remove(outs, operator)).rejects.toMatchObject({
      errorClass: "pending",
      reason: "Terminating",
      message: "ConfigMap deleting is being deleted and waits for: its finalizers example.com/held",
      object: reference("deleting", outs.uid),
    });
    await cluster.edit("deleting", { metadata: { finalizers: null } });
    await remove(outs, operator);
  });

  it("so is an object that still has the name of a new one", async () => {
    const { uid } = await create(cluster.configMap("taken-name", {}, held));
    await cluster.client.delete(CONFIG_MAP, "taken-name", cluster.namespace);
    await expect(create(cluster.configMap("taken-name"), acme, operator)).rejects.toMatchObject({
      errorClass: "pending",
      object: reference("taken-name", uid),
    });
    await cluster.edit("taken-name", { metadata: { finalizers: null } });
  });

  it("a namespace names what remains in it", async () => {
    const name = `${cluster.namespace}-full`;
    const outs = await create({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
    const content = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a", namespace: name, ...held } };
    await cluster.client.create(content);
    await expect
      .poll(() => remove(outs, operator).catch((error: Error) => error.message))
      .toContain("example.com/held in 1 resource instances");
    await cluster.client.mergePatch(CONFIG_MAP, "a", name, { metadata: { finalizers: null } });
  });
});

describe("a RoleBinding", () => {
  const type = ROLE_BINDING;
  const binding = (name: string, role: string, groups: string[], metadata: object = {}): Manifest => ({
    apiVersion: type.apiVersion,
    kind: type.kind,
    metadata: { name, namespace: cluster.namespace, ...metadata },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role },
    subjects: groups.map((group) => ({ apiGroup: "rbac.authorization.k8s.io", kind: "Group", name: group })),
  });
  const live = (name: string) => known(cluster.client.get(type, name, cluster.namespace));
  const groupsOf = async (name: string) =>
    ((await live(name))?.subjects as { name: string }[] | undefined)?.map((subject) => subject.name) ?? [];
  const swap = async (name: string, metadata: object = {}) => {
    await cluster.client.delete(type, name, cluster.namespace);
    await cluster.client.create(binding(name, "view", ["gone"], metadata));
  };

  it.each([
    ["with its labels", () => ({ labels: { [OWNER_UID_LABEL]: acme.uid } })],
    ["without them", () => ({})],
  ])("whose role a user swapped by making it again %s, is made again", async (description, metadata) => {
    const name = description.replaceAll(" ", "-");
    const outs = await create(binding(name, "edit", ["gone", "here"]));
    await swap(name, metadata());
    const updated = await update(outs, binding(name, "edit", ["here"]));
    expect(updated.created).toBe(true);
    expect(await live(name)).toMatchObject({ roleRef: { name: "edit" } });
    expect(await groupsOf(name)).toEqual(["here"]);
  });

  it("is given back its label, whichever a user gave it, and loses the rights that it is not to grant", async () => {
    const relabel = (name: string) =>
      cluster.client.mergePatch(type, name, cluster.namespace, {
        metadata: { labels: { [OWNER_UID_LABEL]: globex.uid } },
      });
    const outs = await create(binding("relabelled", "edit", ["gone", "here"]));
    await relabel("relabelled");
    const updated = await update(outs, binding("relabelled", "edit", ["here"]));
    expect(await live("relabelled")).toMatchObject({ metadata: { labels: { [OWNER_UID_LABEL]: acme.uid } } });
    expect(await groupsOf("relabelled")).toEqual(["here"]);

    await relabel("relabelled");
    await remove(updated);
    expect(await live("relabelled")).toBeUndefined();
  });

  it("of another owner is left alone, whatever its role", async () => {
    const outs = await create(binding("swapped-foreign", "edit", ["here"]));
    await swap("swapped-foreign", { labels: { [OWNER_UID_LABEL]: globex.uid } });
    await expect(update(outs, binding("swapped-foreign", "edit", ["here"]))).rejects.toMatchObject({
      reason: "Conflict",
      object: { metadata: { name: "swapped-foreign" } },
    });
  });

  it("that is deleted and that a finalizer keeps, grants nothing any more", async () => {
    const outs = await create(binding("kept", "edit", ["gone"], { finalizers: ["example.com/held"] }));
    await expect(remove(outs, operator)).rejects.toMatchObject({ errorClass: "pending" });
    expect(await groupsOf("kept")).toEqual([]);
    await cluster.client.mergePatch(type, "kept", cluster.namespace, { metadata: { finalizers: null } });
  });

  it("that a user deleted and that a finalizer keeps, grants what it is to grant", async () => {
    const outs = await create(binding("kept-by-hand", "edit", ["gone", "here"]));
    const finalizers = ["example.com/held"];
    await cluster.client.mergePatch(type, "kept-by-hand", cluster.namespace, { metadata: { finalizers } });
    await cluster.client.delete(type, "kept-by-hand", cluster.namespace);
    const wanted = binding("kept-by-hand", "edit", ["here"]);
    await expect(update(outs, wanted, acme, operator)).rejects.toMatchObject({ errorClass: "pending" });
    expect(await groupsOf("kept-by-hand")).toEqual(["here"]);
    await cluster.client.mergePatch(type, "kept-by-hand", cluster.namespace, { metadata: { finalizers: null } });
  });

  it("that a user deleted and that a finalizer keeps, stays known, and grants nothing once it is not wanted", async () => {
    const outs = await create(binding("kept-known", "edit", ["gone"], { finalizers: ["example.com/held"] }));
    await cluster.client.delete(type, "kept-known", cluster.namespace);
    const known = await read(outs);
    expect(known).toMatchObject({ drifted: true });
    await expect(remove(known as ObjectOutputs, operator)).rejects.toMatchObject({ errorClass: "pending" });
    expect(await groupsOf("kept-known")).toEqual([]);
    await cluster.client.mergePatch(type, "kept-known", cluster.namespace, { metadata: { finalizers: null } });
    expect(await read(outs)).toBeUndefined();
  });
});

describe("what the API server refuses", () => {
  const refusal = (manifest: Manifest) => create(manifest).catch((error: unknown) => error);

  it("is told in its own words, and an invalid object waits for its author", async () => {
    expect(await refusal(cluster.configMap("Bad_Name"))).toMatchObject({
      errorClass: "terminal",
      reason: "Invalid",
      message: expect.stringMatching(/ConfigMap "Bad_Name" is invalid: metadata.name: Invalid value/),
    });
    expect(await refusal({ ...cluster.configMap("unknown-field"), dta: {} })).toMatchObject({
      errorClass: "terminal",
      message: expect.stringContaining(".dta: field not declared in schema"),
    });
  });

  it("may heal when a namespace is missing, and not when a type is", async () => {
    expect(await refusal(cluster.configMap("nowhere", {}, { namespace: "no-such-namespace" }))).toMatchObject({
      errorClass: "retryable",
      message: 'namespaces "no-such-namespace" not found',
    });
    const gadget = { apiVersion: "no.such.group/v1", kind: "Gadget", metadata: { name: "g" } };
    for (const unserved of [gadget, { ...gadget, apiVersion: "v1" }]) {
      expect(await refusal(unserved)).toMatchObject({
        errorClass: "terminal",
        reason: "UnknownKind",
        message: expect.stringContaining(`does not serve Gadget in ${unserved.apiVersion}`),
      });
    }
  });
});

describe("check and diff", () => {
  it("name what is missing", async () => {
    const { failures } = await provider.check({}, { manifest: { kind: "ConfigMap", metadata: {} } });
    expect(failures.map(({ property }) => property)).toEqual([
      "manifest.apiVersion",
      "manifest.metadata.name",
      "owner.uid",
    ]);
  });

  it("replace an object only when it becomes another one", async () => {
    const outs = await create(cluster.configMap("compared", { a: "1" }));
    const diff = (manifest: Manifest) => provider.diff("id", outs, inputs(manifest));
    expect(await diff(cluster.configMap("compared", { a: "1" }))).toEqual({ changes: false });
    expect(await diff(cluster.configMap("compared", { a: "2" }))).toEqual({ changes: true });
    expect(await diff(cluster.configMap("renamed", { a: "1" }))).toEqual({ changes: true, replaces: ["manifest"] });
  });
});

describe("an object that others make", () => {
  const existing = (manifest: Manifest): ObjectInputs => ({ manifest, owner: acme, existing: true });

  it("is never created", async () => {
    const creating = provider.create(existing(cluster.configMap("absent", { a: "1" })));
    await expect(creating).rejects.toMatchObject({ errorClass: "retryable", reason: "Gone" });
    expect(await cluster.find("absent")).toBeUndefined();
  });

  it("is left alone when it is on its way out, and no one waits for its end", async () => {
    await cluster.applyAs("someone", cluster.configMap("ending", {}, { finalizers: ["example.com/held"] }));
    await cluster.client.delete(CONFIG_MAP, "ending", cluster.namespace);
    const creating = provider.create(existing(cluster.configMap("ending", { a: "1" })));
    await expect(creating).rejects.toMatchObject({ reason: "Gone", message: "ConfigMap ending is being deleted" });
    await cluster.edit("ending", { metadata: { finalizers: null } });
  });

  it("is released without a deletion, and deleted with the object with which it ends, unless it was released", async () => {
    const owner = await cluster.applyAs("someone", cluster.configMap("boss", {}, { finalizers: ["example.com/held"] }));
    const { uid } = owner.metadata;
    const deletedWith = { apiVersion: "v1", kind: "ConfigMap", name: "boss", uid };
    await cluster.applyAs("someone", cluster.configMap("found", { theirs: "1" }));
    const manifest = cluster.configMap("found", { ours: "1" });
    const ending = { ...existing(manifest), deletedWith };
    const { outs } = await provider.create(ending);
    expect(outs).toMatchObject({ created: false, existing: true });

    await remove(outs);
    const released = await cluster.find("found");
    expect(released).toMatchObject({ data: { theirs: "1" } });
    expect(released?.metadata.ownerReferences).toBeUndefined();

    const again = (await provider.create(ending)).outs;
    await cluster.applyAs("someone", cluster.configMap("taken-out", { theirs: "1" }));
    const takenOut = await provider.create({ ...ending, manifest: cluster.configMap("taken-out", { ours: "1" }) });
    await cluster.edit("taken-out", { metadata: { labels: { [OWNER_UID_LABEL]: null } } });
    await cluster.client.delete(CONFIG_MAP, "boss", cluster.namespace);
    await remove(takenOut.outs);
    expect(await cluster.find("taken-out")).toMatchObject({ data: { theirs: "1" } });
    const limits: Manifest = {
      apiVersion: "v1",
      kind: "LimitRange",
      metadata: { name: "limits", namespace: cluster.namespace },
      spec: { limits: [] },
    };
    await remove((await provider.create({ manifest: limits, owner: acme, deletedWith })).outs);
    expect(await cluster.client.find(limits as LiveObject)).toMatchObject({ outcome: "found" }); // it limits what is left
    await remove(again);
    expect(await cluster.find("found")).toBeUndefined();
    await cluster.edit("boss", { metadata: { finalizers: null } });
  });
});

describe("an object that users give by a label", () => {
  const LABEL = "example.com/team";
  const given = (name: string): ObjectInputs => {
    const manifest = cluster.configMap(name, { ours: "1" }, { labels: { [LABEL]: "acme" } });
    return { manifest, owner: acme, existing: true, givenBy: LABEL };
  };
  /** Runs `change` between the provider's read and its first apply. */
  function meanwhile(change: () => Promise<unknown>): void {
    const original = KubernetesClient.prototype.apply;
    const apply = vi.spyOn(KubernetesClient.prototype, "apply");
    apply.mockImplementationOnce(async function (this: KubernetesClient, ...args) {
      await change();
      return original.apply(this, args);
    });
    onTestFinished(() => apply.mockRestore());
  }

  it("is left alone when they take it back, also while it is being applied", async () => {
    await cluster.applyAs("someone", cluster.configMap("withdrawn", {}, { labels: { [LABEL]: "acme" } }));
    meanwhile(() => cluster.edit("withdrawn", { metadata: { labels: { [LABEL]: null } } }));
    const creating = provider.create(given("withdrawn"));
    await expect(creating).rejects.toMatchObject({ errorClass: "retryable", reason: "Gone" });
    const live = await cluster.find("withdrawn");
    expect(live?.metadata.labels).toBeUndefined();
    expect(live?.data).toBeUndefined();
  });

  it("is applied when others change something else meanwhile", async () => {
    await cluster.applyAs("someone", cluster.configMap("busy", {}, { labels: { [LABEL]: "acme" } }));
    meanwhile(() => cluster.edit("busy", { data: { theirs: "2" } }));
    await provider.create(given("busy"));
    expect(await cluster.find("busy")).toMatchObject({ data: { ours: "1", theirs: "2" } });
  });

  it("is given back its label while that of its owner is left", async () => {
    await cluster.applyAs("someone", cluster.configMap("kept", {}, { labels: { [OWNER_UID_LABEL]: acme.uid } }));
    await provider.create(given("kept"));
    expect((await cluster.find("kept"))?.metadata.labels).toMatchObject({ [LABEL]: "acme" });
  });
});

it("an object with fields that another manager keeps has them from its first moment, and loses or resets none of them later", async () => {
  const manifest = cluster.configMap("shared", { ours: "1" });
  const initial = { manifest: cluster.configMap("shared", { ours: "1", theirs: "0" }), fieldManager: "keeper" };
  const { outs } = await provider.create({ manifest, owner: acme, initial });
  expect(outs.created).toBe(true);
  expect(await cluster.find("shared")).toMatchObject({ data: { ours: "1", theirs: "0" } });

  await cluster.applyAs("keeper", cluster.configMap("shared", { theirs: "7" }));
  expect((await read(outs))?.drifted).toBe(false);
  const news = { manifest: cluster.configMap("shared", { ours: "2" }), owner: acme, initial };
  await provider.update("id", outs, news);
  expect(await cluster.find("shared")).toMatchObject({ data: { ours: "2", theirs: "7" } });
  await remove(outs);
  expect(await cluster.find("shared")).toBeUndefined();
});

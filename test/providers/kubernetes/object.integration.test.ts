import { randomUUID } from "node:crypto";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { KubernetesClient, known, type LiveObject, type Manifest } from "../../../providers/kubernetes/client";
import { provider } from "../../../providers/kubernetes/object";
import type { ObjectOutputs } from "../../../providers/kubernetes/object-inputs";
import { CREATED_ANNOTATION, OWNER_UID_LABEL, type Owner } from "../../../providers/kubernetes/ownership";
import { acme, globex, marksOf } from "../../objects";
import { retryable, terminal } from "../failures";
import { testContext } from "../test-context";
import { create, read, remove, rightBefore, update } from "./objects";
import { CONFIG_MAP, HELD, NAMESPACE, ROLE_BINDING, TestCluster } from "./test-cluster";

const cluster = TestCluster.use();

/** As an operator calls. */
const operator = testContext();
const theirs = { owner: globex };

describe("create", () => {
  it("creates the object with its owner, and records what it created", async () => {
    const manifest = cluster.configMap("made", { a: "1" }, { labels: { team: "acme" } });
    const { id, outs } = await provider.create({ manifest, owner: acme });
    const live = await cluster.find("made");
    expect(id).toBe(`/ConfigMap/${cluster.namespace}/made`);
    const { labels, annotations } = marksOf(acme, { created: true });
    expect(live).toMatchObject({ data: { a: "1" }, metadata: { labels: { team: "acme", ...labels }, annotations } });
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
    const held = await create(cluster.configMap("overtaken-create", {}, HELD));
    await cluster.client.delete(CONFIG_MAP, "overtaken-create", cluster.namespace);
    const original = KubernetesClient.prototype.applyNew;
    const write = vi.spyOn(KubernetesClient.prototype, "applyNew");
    onTestFinished(() => write.mockRestore());
    write.mockImplementationOnce(original); // is refused: the predecessor is there
    write.mockImplementationOnce(async function (this: KubernetesClient, ...given) {
      await create(cluster.configMap("overtaken-create", { a: "theirs" }), theirs);
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
    const held = await create(cluster.configMap("held", {}, HELD));
    await cluster.client.delete(CONFIG_MAP, "held", cluster.namespace);
    const creating = create(cluster.configMap("held", { a: "new" }));
    await cluster.edit("held", { metadata: { finalizers: null } });
    const made = await creating;
    expect(made.uid).not.toBe(held.uid);
    expect(made.created).toBe(true);
  });

  it.each(["kube-public", "default", "kindstack-system"])("never takes the namespace %s", async (name) => {
    const before = await known(cluster.client.get(NAMESPACE, name));
    const creating = create({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
    await expect(creating).rejects.toEqual(terminal("NamespaceProtected", `"${name}" is protected`));
    expect(await known(cluster.client.get(NAMESPACE, name))).toEqual(before);
  });

  it("is refused when another owner has the object, and says whose it is and what to do", async () => {
    await create(cluster.configMap("taken", { a: "1" }), theirs);
    const message = `^ConfigMap taken belongs to ${globex.description}\\. Give one of them another name; if that owner is gone, remove the label ${OWNER_UID_LABEL} of ConfigMap taken$`;
    await expect(create(cluster.configMap("taken", { a: "2" }))).rejects.toEqual(terminal("Conflict", message));
    expect(await cluster.find("taken")).toMatchObject({ data: { a: "1" } });
  });

  it("takes over what a predecessor of the owner's name has left, as after a restore", async () => {
    const [before, now] = [1, 2].map(() => ({ uid: randomUUID(), description: acme.description })) as [Owner, Owner];
    await create(cluster.configMap("inherited", { a: "1" }), { owner: before });
    await cluster.applyAs("someone", cluster.configMap("inherited", { theirs: "1" }));
    for (const owner of [acme, { uid: randomUUID(), description: globex.description }]) {
      const creating = create(cluster.configMap("inherited", { a: "2" }), { owner });
      await expect(creating).rejects.toMatchObject({ reason: "Conflict" });
    }
    const outs = await create(cluster.configMap("inherited", { a: "2" }), { owner: now });
    const live = await cluster.find("inherited");
    expect(live).toMatchObject({ data: { a: "2", theirs: "1" }, metadata: { labels: { [OWNER_UID_LABEL]: now.uid } } });
    await remove(outs);
    expect(await cluster.find("inherited")).toBeUndefined(); // it was created, by the predecessor
  });

  it("leaves what was moved as its message says where it is, and the other owner adopts it", async () => {
    const outs = await create(cluster.configMap("moved", { a: "1" }), theirs);
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
    const labels = { ...foreign.labels, mine: "1", [OWNER_UID_LABEL]: acme.uid };
    const data = { theirs: "1", ours: "1" };
    expect(await cluster.find("adopted")).toMatchObject({ data, metadata: { ...foreign, labels } });
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
    await create(cluster.configMap("overtaken", { a: "2" }), theirs);
    const updating = update(outs, cluster.configMap("overtaken", { a: "1" }));
    await expect(updating).rejects.toMatchObject({ reason: "Conflict" });
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
    expect(await provider.diff("id", drifted, { manifest, owner: acme })).toMatchObject({ changes: true });
    const repaired = await update(drifted, manifest);
    expect(await read(repaired)).toMatchObject({ drifted: false });
    const labels = { team: "acme", [OWNER_UID_LABEL]: acme.uid };
    expect(await cluster.find(name)).toMatchObject({ data: { a: "1" }, metadata: { labels } });
  });

  it("sees none when a user adds something of their own", async () => {
    const outs = await create(cluster.configMap("extended", { a: "1" }));
    const metadata = { labels: { theirs: "1" }, annotations: { n: "1" } };
    await cluster.edit("extended", { data: { b: "2" }, metadata });
    expect(await read(outs)).toMatchObject({ drifted: false });
  });

  it("finds nothing when the object is gone, nor when it is on its way out", async () => {
    const gone = await create(cluster.configMap("gone"));
    const leaving = await create(cluster.configMap("leaving", {}, HELD));
    for (const name of ["gone", "leaving"]) await cluster.client.delete(CONFIG_MAP, name, cluster.namespace);
    expect(await read(gone)).toBeUndefined();
    expect((await cluster.find("leaving"))?.metadata.deletionTimestamp).toEqual(expect.any(String));
    expect(await read(leaving)).toBeUndefined();
    await cluster.edit("leaving", { metadata: { finalizers: null } });
  });

  it("sees no drift in defaults that the server fills in, nor in a status that controllers write", async () => {
    const outs = await create(cluster.deployment("web", 0));
    const type = await cluster.client.resourceType("apps/v1", "Deployment");
    await expect.poll(async () => (await cluster.find("web", type))?.status).toMatchObject({ observedGeneration: 1 });
    expect(await read(outs)).toMatchObject({ drifted: false });
  });
});

describe("delete", () => {
  it("deletes what was created, and succeeds when there is nothing left", async () => {
    const outs = await create(cluster.configMap("deleted"));
    await remove(outs);
    expect(await cluster.find("deleted")).toBeUndefined();
    await expect(remove(outs)).resolves.toBeUndefined();
  });

  it("deletes what was created also when a user took the owner's label off", async () => {
    const outs = await create(cluster.configMap("unlabelled"));
    await cluster.edit("unlabelled", { metadata: { labels: { [OWNER_UID_LABEL]: null } } });
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
    await cluster.client.create(cluster.configMap("a", {}, { namespace: name }));
    await remove(outs);
    expect(await known(cluster.client.get(NAMESPACE, name))).toBeUndefined();
  });
});

describe("where it may not wait", () => {
  const reference = (name: string, uid: string) => cluster.manifest(CONFIG_MAP, name, {}, { uid });

  it("a deletion that is accepted and not done is told at once, with what keeps it", async () => {
    const outs = await create(cluster.configMap("deleting", {}, HELD));
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
    const { uid } = await create(cluster.configMap("taken-name", {}, HELD));
    await cluster.client.delete(CONFIG_MAP, "taken-name", cluster.namespace);
    await expect(create(cluster.configMap("taken-name"), {}, operator)).rejects.toMatchObject({
      errorClass: "pending",
      object: reference("taken-name", uid),
    });
    await cluster.edit("taken-name", { metadata: { finalizers: null } });
  });

  it("a namespace names what remains in it", async () => {
    const name = `${cluster.namespace}-full`;
    const outs = await create({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
    await cluster.client.create(cluster.configMap("a", {}, { namespace: name, ...HELD }));
    await expect
      .poll(() => remove(outs, operator).catch((error: Error) => error.message))
      .toContain("example.com/held in 1 resource instances");
    await cluster.client.mergePatch(CONFIG_MAP, "a", name, { metadata: { finalizers: null } });
  });
});

describe("a RoleBinding", () => {
  const type = ROLE_BINDING;
  const apiGroup = "rbac.authorization.k8s.io";
  const binding = (name: string, role: string, groups: string[], metadata: object = {}): Manifest => {
    const roleRef = { apiGroup, kind: "ClusterRole", name: role };
    const subjects = groups.map((group) => ({ apiGroup, kind: "Group", name: group }));
    return cluster.manifest(type, name, { roleRef, subjects }, metadata);
  };
  const live = (name: string) => cluster.find(name, type);
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
    const metadata = { labels: { [OWNER_UID_LABEL]: globex.uid } };
    const relabel = (name: string) => cluster.client.mergePatch(type, name, cluster.namespace, { metadata });
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
    const outs = await create(binding("kept", "edit", ["gone"], HELD));
    await expect(remove(outs, operator)).rejects.toMatchObject({ errorClass: "pending" });
    expect(await groupsOf("kept")).toEqual([]);
    await cluster.removeFinalizers("kept", type);
  });

  it("that a user deleted and that a finalizer keeps, grants what it is to grant", async () => {
    const outs = await create(binding("kept-by-hand", "edit", ["gone", "here"]));
    await cluster.client.mergePatch(type, "kept-by-hand", cluster.namespace, { metadata: HELD });
    await cluster.remove("kept-by-hand", type);
    const wanted = binding("kept-by-hand", "edit", ["here"]);
    await expect(update(outs, wanted, {}, operator)).rejects.toMatchObject({ errorClass: "pending" });
    expect(await groupsOf("kept-by-hand")).toEqual(["here"]);
    await cluster.removeFinalizers("kept-by-hand", type);
  });

  it("that a user deleted and that a finalizer keeps, stays known, and grants nothing once it is not wanted", async () => {
    const outs = await create(binding("kept-known", "edit", ["gone"], HELD));
    await cluster.client.delete(type, "kept-known", cluster.namespace);
    const known = await read(outs);
    expect(known).toMatchObject({ drifted: true });
    await expect(remove(known as ObjectOutputs, operator)).rejects.toMatchObject({ errorClass: "pending" });
    expect(await groupsOf("kept-known")).toEqual([]);
    await cluster.removeFinalizers("kept-known", type);
    expect(await read(outs)).toBeUndefined();
  });
});

describe("an object that others make", () => {
  const existing = { existing: true };

  it("is never created", async () => {
    const creating = create(cluster.configMap("absent", { a: "1" }), existing);
    await expect(creating).rejects.toEqual(retryable("Gone"));
    expect(await cluster.find("absent")).toBeUndefined();
  });

  it("is left alone when it is on its way out, and no one waits for its end", async () => {
    await cluster.applyAs("someone", cluster.configMap("ending", {}, HELD));
    await cluster.client.delete(CONFIG_MAP, "ending", cluster.namespace);
    const creating = create(cluster.configMap("ending", { a: "1" }), existing);
    await expect(creating).rejects.toMatchObject({ reason: "Gone", message: "ConfigMap ending is being deleted" });
    await cluster.edit("ending", { metadata: { finalizers: null } });
  });

  it("is released without a deletion, and deleted with the object with which it ends, unless it was released", async () => {
    const { uid } = (await cluster.applyAs("someone", cluster.configMap("boss", {}, HELD))).metadata;
    const ending = { ...existing, deletedWith: { apiVersion: "v1", kind: "ConfigMap", name: "boss", uid } };
    await cluster.applyAs("someone", cluster.configMap("found", { theirs: "1" }));
    const outs = await create(cluster.configMap("found", { ours: "1" }), ending);
    expect(outs).toMatchObject({ created: false, existing: true });

    await remove(outs);
    const released = await cluster.find("found");
    expect(released).toMatchObject({ data: { theirs: "1" } });
    expect(released?.metadata.ownerReferences).toBeUndefined();

    const again = await create(cluster.configMap("found", { ours: "1" }), ending);
    await cluster.applyAs("someone", cluster.configMap("taken-out", { theirs: "1" }));
    const takenOut = await create(cluster.configMap("taken-out", { ours: "1" }), ending);
    await cluster.edit("taken-out", { metadata: { labels: { [OWNER_UID_LABEL]: null } } });
    await cluster.client.delete(CONFIG_MAP, "boss", cluster.namespace);
    await remove(takenOut);
    expect(await cluster.find("taken-out")).toMatchObject({ data: { theirs: "1" } });
    const limits = cluster.manifest({ apiVersion: "v1", kind: "LimitRange" }, "limits", { spec: { limits: [] } });
    await remove(await create(limits, { deletedWith: ending.deletedWith }));
    expect(await cluster.client.find(limits as LiveObject)).toMatchObject({ outcome: "found" }); // it limits what is left
    await remove(again);
    expect(await cluster.find("found")).toBeUndefined();
    await cluster.edit("boss", { metadata: { finalizers: null } });
  });
});

describe("an object that users give by a label", () => {
  const LABEL = "example.com/team";
  const given = (name: string) =>
    create(cluster.configMap(name, { ours: "1" }, { labels: { [LABEL]: "acme" } }), { existing: true, givenBy: LABEL });

  it("is left alone when they take it back, also while it is being applied", async () => {
    await cluster.applyAs("someone", cluster.configMap("withdrawn", {}, { labels: { [LABEL]: "acme" } }));
    rightBefore("apply", () => cluster.edit("withdrawn", { metadata: { labels: { [LABEL]: null } } }));
    await expect(given("withdrawn")).rejects.toEqual(retryable("Gone"));
    const live = await cluster.find("withdrawn");
    expect(live?.metadata.labels).toBeUndefined();
    expect(live?.data).toBeUndefined();
  });

  it("is applied when others change something else meanwhile", async () => {
    await cluster.applyAs("someone", cluster.configMap("busy", {}, { labels: { [LABEL]: "acme" } }));
    rightBefore("apply", () => cluster.edit("busy", { data: { theirs: "2" } }));
    await given("busy");
    expect(await cluster.find("busy")).toMatchObject({ data: { ours: "1", theirs: "2" } });
  });

  it("is given back its label while that of its owner is left", async () => {
    await cluster.applyAs("someone", cluster.configMap("kept", {}, { labels: { [OWNER_UID_LABEL]: acme.uid } }));
    await given("kept");
    expect((await cluster.find("kept"))?.metadata.labels).toMatchObject({ [LABEL]: "acme" });
  });
});

it("an object with fields that another manager keeps has them from its first moment, and loses or resets none of them later", async () => {
  const initial = { manifest: cluster.configMap("shared", { ours: "1", theirs: "0" }), fieldManager: "keeper" };
  const outs = await create(cluster.configMap("shared", { ours: "1" }), { initial });
  expect(outs.created).toBe(true);
  expect(await cluster.find("shared")).toMatchObject({ data: { ours: "1", theirs: "0" } });

  await cluster.applyAs("keeper", cluster.configMap("shared", { theirs: "7" }));
  expect((await read(outs))?.drifted).toBe(false);
  await update(outs, cluster.configMap("shared", { ours: "2" }), { initial });
  expect(await cluster.find("shared")).toMatchObject({ data: { ours: "2", theirs: "7" } });
  await remove(outs);
  expect(await cluster.find("shared")).toBeUndefined();
});

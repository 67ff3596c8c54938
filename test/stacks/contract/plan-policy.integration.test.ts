import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type KubernetesClient, known, type LiveObject, type ObjectType } from "../../../providers/kubernetes/client";
import { installKinds } from "../../../src/operator/install";
import { eventually } from "../../../src/testing/eventually";
import { APPROVAL_TYPE } from "../../../stacks/contract/approval";
import { kindName, kindType } from "../../../stacks/contract/kind";
import { MODE_ANNOTATION } from "../../../stacks/contract/mode";
import { FINALIZER } from "../../../stacks/contract/object";
import { PLAN_TYPE } from "../../../stacks/contract/plan";
import { operatorRules } from "../../../stacks/contract/rbac";
import { podSet } from "../../../stacks/kinds/podset/kind";
import { tenant } from "../../../stacks/kinds/tenant/kind";
import { digest, planSpec } from "../../controller/plans";
import { NAMESPACE, TestCluster } from "../../providers/kubernetes/test-cluster";
import { bindingFor, userNamed } from "../../rights";

/*
 * Who may approve, write plans and loosen modes, against the real API server: its authorizer and its policies decide.
 */

const RBAC = "rbac.authorization.k8s.io";
const APPROVE = { apiGroups: ["kindstack.dev"], resources: ["plans"], verbs: ["approve"] };
/** Of a role as it is often written: all usual verbs on all resources, but no verb of its own. */
const EDIT = {
  apiGroups: ["*"],
  resources: ["*"],
  verbs: ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"],
};
const TENANT_SPEC = { adminEmail: "a@example.com", adminGroups: ["a"], userGroups: ["u"], namespaces: ["n"] };
const DAY_MS = 86_400_000;

const cluster = TestCluster.use();
let operators: string;
let editor: KubernetesClient;
let approver: KubernetesClient;
let other: KubernetesClient;
let everywhere: KubernetesClient;
let operator: KubernetesClient;

beforeAll(async () => {
  await installKinds(cluster.client, [podSet, tenant]);
  operators = `${cluster.namespace}-operator`;
  await cluster.client.create({ apiVersion: "v1", kind: "Namespace", metadata: { name: operators } });
  editor = await user("editor", [EDIT], [cluster.namespace, operators, undefined]);
  approver = await user("approver", [EDIT, APPROVE], [cluster.namespace]);
  other = await user("other-approver", [EDIT, APPROVE], [cluster.namespace]);
  everywhere = await user("approver-everywhere", [EDIT, APPROVE], [undefined]);
  operator = await user("the-operator", operatorRules([podSet, tenant]), [undefined]);
  // A policy takes a moment to be in force.
  await eventually(async () => {
    expect(await approve(editor, {}).then(String, String)).toContain("takes the right to approve");
    expect(await write(editor, {}).then(String, String)).toContain("written by the operator alone");
  });
});
afterAll(async () => {
  const users = ["editor", "approver", "other-approver", "approver-everywhere", "approver-elsewhere", "the-operator"];
  for (const name of users.map(roleOf)) {
    for (const kind of ["ClusterRole", "ClusterRoleBinding"]) {
      await cluster.client.delete({ apiVersion: `${RBAC}/v1`, kind }, name);
    }
  }
  await cluster.client.delete(NAMESPACE, operators);
});

const roleOf = (name: string) => `${cluster.namespace}-${name}`;

/** A user with these rights, in these namespaces or in the whole cluster. */
async function user(
  name: string,
  rules: readonly object[],
  namespaces: readonly (string | undefined)[],
): Promise<KubernetesClient> {
  const role = { name: roleOf(name) };
  await cluster.client.apply({ apiVersion: `${RBAC}/v1`, kind: "ClusterRole", metadata: role, rules });
  for (const namespace of namespaces) {
    const metadata = { ...role, ...(namespace !== undefined && { namespace }) };
    await cluster.client.apply(bindingFor([userNamed(name)], role.name, metadata));
  }
  return cluster.as(name);
}

const labelled = { metadata: { labels: { a: "b" } } };
const lacksRight = (namespace: string) =>
  `takes the right to approve plans.kindstack.dev in the namespace ${namespace}`;

interface Changes {
  name?: string;
  namespace?: string;
  spec?: object;
}

function approve(client: KubernetesClient, { name, namespace = cluster.namespace, spec }: Changes) {
  const object = { kind: kindName(podSet), name: "web" };
  const metadata = { namespace, ...(name === undefined ? { generateName: "a-" } : { name }) };
  const complete = { object, digest: digest(), approver: "approver", ...spec };
  return client.create({ ...APPROVAL_TYPE, metadata, spec: complete });
}

function write(client: KubernetesClient, { name = "forged", namespace = cluster.namespace, spec }: Changes) {
  const object = { ...kindType(podSet), name: "web", namespace, uid: "1", generation: 1 };
  const status = { state: "Pending" };
  const manifest = { ...PLAN_TYPE, metadata: { name, namespace }, spec: { ...planSpec(object), ...spec }, status };
  return client.apply(manifest, { fieldManager: "test" });
}

describe("an approval", () => {
  it("is made by those alone who have the right to approve in the namespace, and in their own name", async () => {
    await expect(approve(editor, { spec: { approver: "editor" } })).rejects.toThrow(lacksRight(cluster.namespace));
    await expect(approve(other, {})).rejects.toThrow("must be your own name, other-approver");
    expect((await approve(approver, {})).spec).toMatchObject({ decision: "Approve", approver: "approver" });
    const rejection = { approver: "other-approver", decision: "Reject" };
    expect((await approve(other, { spec: rejection })).spec).toMatchObject(rejection);
    await expect(approve(approver, { spec: { approver: "" } })).rejects.toThrow();
    await expect(approve(approver, { spec: { approver: "system:admin" } })).rejects.toThrow("your own name");
  });

  it("is made where the plan is: for what has no namespace in the operator's", async () => {
    await expect(approve(approver, { namespace: operators })).rejects.toThrow();
    const byEditor = { namespace: operators, spec: { approver: "editor" } };
    await expect(approve(editor, byEditor)).rejects.toThrow(lacksRight(operators));
    const spec = { object: { kind: kindName(tenant), name: "a" }, approver: "approver-everywhere" };
    expect((await approve(everywhere, { namespace: operators, spec })).spec).toMatchObject(spec);
  });

  it("is not changed by anyone, and expires within 30 days", async () => {
    const { metadata } = await approve(approver, {});
    const patch = (client: KubernetesClient, spec: object) =>
      client.mergePatch(APPROVAL_TYPE, metadata.name, cluster.namespace, { spec });
    for (const spec of [{ digest: digest() }, { decision: "Reject" }, { approver: "editor" }, { reason: "a" }]) {
      await expect(patch(approver, spec)).rejects.toThrow("an approval cannot be changed");
      await expect(patch(cluster.client, spec)).rejects.toThrow("an approval cannot be changed");
    }
    await editor.mergePatch(APPROVAL_TYPE, metadata.name, cluster.namespace, labelled);

    const expiringIn = (days: number) => ({ expiresAt: new Date(Date.now() + days * DAY_MS).toISOString() });
    const late = expiringIn(29.9);
    expect((await approve(approver, { spec: late })).spec).toMatchObject(late);
    await expect(approve(approver, { spec: expiringIn(30.1) })).rejects.toThrow("must be at most 30 days from now");
    await expect(approve(approver, { spec: { expiresAt: "tomorrow" } })).rejects.toThrow();
    // The time of its creation is the API server's.
    const forged = approver.create({
      ...APPROVAL_TYPE,
      metadata: { generateName: "a-", namespace: cluster.namespace, creationTimestamp: "2030-01-01T00:00:00Z" },
      spec: { digests: [digest()], approver: "approver", expiresAt: "2030-01-02T00:00:00Z" },
    });
    await expect(forged).rejects.toThrow("must be at most 30 days from now");
  });

  it("names a plan, or several and no object", async () => {
    const without = { object: undefined, digest: undefined };
    const digests = [digest(), digest()];
    expect((await approve(approver, { spec: { ...without, digests } })).spec).toMatchObject({ digests });
    await expect(approve(approver, { spec: without })).rejects.toThrow("needs either digest or digests");
    await expect(approve(approver, { spec: { digests: [digest()] } })).rejects.toThrow("either digest or digests");
    await expect(approve(approver, { spec: { object: undefined } })).rejects.toThrow("go together");
    await expect(approve(approver, { spec: { digest: "sha256:0" } })).rejects.toThrow("spec.digest");
  });
});

describe("a plan", () => {
  it("is written by the operator alone; all others, also those who may approve, may delete it", async () => {
    await write(operator, { name: "true" });
    for (const client of [editor, approver, other]) {
      await expect(write(client, {})).rejects.toThrow("plans are written by the operator alone");
      await expect(write(client, { name: "true", spec: { steps: [] } })).rejects.toThrow("by the operator alone");
      const patched = client.mergePatch(PLAN_TYPE, "true", cluster.namespace, { status: { state: "Applying" } });
      await expect(patched).rejects.toThrow("by the operator alone");
    }
    await editor.mergePatch(PLAN_TYPE, "true", cluster.namespace, labelled);
    await editor.delete(PLAN_TYPE, "true", cluster.namespace);
    expect(await known(cluster.client.get(PLAN_TYPE, "true", cluster.namespace))).toBeUndefined();
  });

  it("goes with its namespace", async () => {
    const namespace = `${cluster.namespace}-ending`;
    await cluster.client.create({ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
    await write(operator, { namespace });
    await approve(everywhere, { namespace, spec: { approver: "approver-everywhere" } });
    await cluster.client.delete(NAMESPACE, namespace);
    await expect.poll(() => known(cluster.client.get(NAMESPACE, namespace))).toBeUndefined();
  });
});

describe("the finalizer of an object", () => {
  const OTHER = "example.com/other";
  const metadataOf = (name: string) => ({ name, namespace: cluster.namespace });
  const path = (name: string, subresource = "") =>
    `/apis/${kindType(podSet).apiVersion}/namespaces/${cluster.namespace}/podsets/${name}${subresource}`;
  const make = (client: KubernetesClient, name: string, finalizers?: string[]) => {
    const metadata = { ...metadataOf(name), ...(finalizers && { finalizers }) };
    return client.create({ ...kindType(podSet), metadata, spec: { replicas: 1 } });
  };
  const patch = (client: KubernetesClient, name: string, metadata: object) =>
    client.mergePatch(kindType(podSet), name, cluster.namespace, { metadata });
  const find = async (name: string) => {
    const live = await known(cluster.client.get(kindType(podSet), name, cluster.namespace));
    if (live === undefined) throw new Error(`${name} is gone`);
    return live;
  };
  const put = async (client: KubernetesClient, name: string, metadata: object, subresource = "") => {
    const live = await find(name);
    const body = { ...live, metadata: { ...live.metadata, ...metadata } };
    return client.json<LiveObject>("PUT", path(name, subresource), { body });
  };

  beforeAll(async () => {
    await make(editor, "probe", [FINALIZER]);
    await eventually(async () => {
      const said = await patch(editor, "probe", { finalizers: null }).then(String, String);
      await patch(editor, "probe", { finalizers: [FINALIZER] });
      expect(said).toContain("is removed by the operator");
    });
  });

  it.each(["at rest", "being deleted"])("is not removed by who may edit, of one that is %s", async (state) => {
    const name = state.replace(/\W/g, "-");
    await make(editor, name, [OTHER, FINALIZER]);
    const apply = { ...kindType(podSet), metadata: { ...metadataOf(name), finalizers: [FINALIZER] } };
    await editor.apply(apply, { fieldManager: "editor" });
    if (state === "being deleted") await editor.delete(kindType(podSet), name, cluster.namespace);
    const refused = lacksRight(cluster.namespace);
    // To what is being deleted, the API server adds no finalizers.
    const spelled = state === "being deleted" ? [] : [{ finalizers: [`${FINALIZER}2`, OTHER] }];
    for (const metadata of [{ finalizers: null }, { finalizers: [OTHER] }, ...spelled]) {
      await expect(patch(editor, name, metadata)).rejects.toThrow(refused);
      await expect(put(editor, name, { finalizers: metadata.finalizers ?? undefined })).rejects.toThrow(refused);
    }
    const operations = [{ op: "remove", path: "/metadata/finalizers/1" }];
    await expect(editor.patchExactly(await find(name), operations)).rejects.toThrow(refused);
    // Another manager's apply without it leaves it, as do the subresources.
    await editor.apply({ ...kindType(podSet), metadata: metadataOf(name) }, { fieldManager: "editor" });
    await put(editor, name, { finalizers: [] }, "/status");
    const scale = await editor.json<LiveObject>("GET", path(name, "/scale"), {});
    await editor.json("PUT", path(name, "/scale"), { body: { ...scale, spec: { replicas: 2 } } });
    expect((await find(name)).metadata.finalizers).toEqual([OTHER, FINALIZER]);

    await patch(editor, name, { finalizers: [FINALIZER], labels: { a: "b" } });
    await put(editor, name, { labels: { a: "c" } });
    await patch(approver, name, { finalizers: null });
  });

  it("is removed by the operator, and by who may approve in the namespace or everywhere", async () => {
    for (const [index, client] of [operator, approver, everywhere, cluster.client].entries()) {
      await make(cluster.client, `held-${index}`, [FINALIZER]);
      expect((await patch(client, `held-${index}`, { finalizers: null })).metadata.finalizers).toBeUndefined();
    }
    const elsewhere = await user("approver-elsewhere", [APPROVE], [operators]);
    await make(cluster.client, "held", [FINALIZER]);
    await expect(patch(elsewhere, "held", { finalizers: null })).rejects.toThrow();
  });

  it("is no matter of an object that has none, nor of a copy of one that has it", async () => {
    await make(editor, "without");
    await put(editor, "without", { labels: { a: "b" } });
    await editor.delete(kindType(podSet), "without", cluster.namespace);
    const { metadata, ...copied } = await make(editor, "original", [FINALIZER]);
    const { uid: _, resourceVersion: __, ...rest } = metadata;
    await editor.create({ ...copied, metadata: { ...rest, name: "copy" } });
    for (const name of ["original", "copy"]) await patch(approver, name, { finalizers: null });
  });

  it("is kept, where it has no namespace, from who may approve in one", async () => {
    const metadata = { name: `${cluster.namespace}-held`, finalizers: [FINALIZER] };
    await cluster.client.create({ ...kindType(tenant), metadata, spec: TENANT_SPEC });
    const release = (client: KubernetesClient) =>
      client.mergePatch(kindType(tenant), metadata.name, undefined, { metadata: { finalizers: null } });
    await expect.poll(() => release(editor).then(String, String)).toContain("plans.kindstack.dev cluster-wide");
    await release(everywhere);
    await cluster.client.delete(kindType(tenant), metadata.name);
  });
});

describe("loosening a mode", () => {
  const annotate = (client: KubernetesClient, type: ObjectType, { metadata }: LiveObject, mode: string | null) =>
    client.mergePatch(type, metadata.name, undefined, { metadata: { annotations: { [MODE_ANNOTATION]: mode } } });

  /** Replaces an object, or a subresource of it, by one without annotations. */
  async function empty(type: ObjectType, { metadata }: LiveObject, subresource = ""): Promise<LiveObject> {
    const { apiVersion, plural } = await cluster.client.resourceType(type.apiVersion, type.kind);
    const live = (await known(cluster.client.get(type, metadata.name))) as LiveObject;
    const body = { ...live, metadata: { ...live.metadata, annotations: {} } };
    const group = apiVersion === "v1" ? "/api/v1" : `/apis/${apiVersion}`;
    return editor.json("PUT", `${group}/${plural}/${metadata.name}${subresource}`, { body });
  }

  async function refusesLoosening(type: ObjectType, object: LiveObject, where: string): Promise<void> {
    const right = `takes the right to approve plans.kindstack.dev ${where}`;
    await annotate(editor, type, object, "Observe");
    for (const mode of [null, "Apply", "apply "]) {
      await expect(annotate(editor, type, object, mode)).rejects.toThrow(right);
    }
    await expect(empty(type, object)).rejects.toThrow("takes the right to approve");
    await annotate(everywhere, type, object, null);
    await annotate(editor, type, object, "Observe");
    await annotate(everywhere, type, object, "Apply");
  }

  it("of an object takes the right to approve in its namespace", async () => {
    const metadata = { name: "loosened", namespace: cluster.namespace };
    await cluster.client.create({ ...kindType(podSet), metadata, spec: { replicas: 1 } });
    const set = (client: KubernetesClient, mode: string | null) =>
      client.mergePatch(kindType(podSet), metadata.name, metadata.namespace, {
        metadata: { annotations: { [MODE_ANNOTATION]: mode } },
      });
    await eventually(async () => {
      await set(editor, "Observe");
      await expect(set(editor, null)).rejects.toThrow(lacksRight(cluster.namespace));
    });
    expect((await set(approver, null)).metadata.annotations).toBeUndefined();
  });

  it("of a namespace takes the right to approve in it, also through its subresources", async () => {
    const object = (await known(cluster.client.get(NAMESPACE, cluster.namespace))) as LiveObject;
    // The policy for namespaces may come into force after the others.
    await expect
      .poll(async () => {
        await annotate(editor, NAMESPACE, object, "Observe");
        return annotate(editor, NAMESPACE, object, null).then(String, String);
      })
      .toContain("takes the right to approve");
    await refusesLoosening(NAMESPACE, object, `in the namespace ${cluster.namespace}`);
    await annotate(editor, NAMESPACE, object, "Observe");
    for (const subresource of ["/status", "/finalize"]) {
      await expect(empty(NAMESPACE, object, subresource)).rejects.toThrow("takes the right to approve");
    }
  });

  it("of what has no namespace takes the right in the whole cluster", async () => {
    const metadata = { name: `${cluster.namespace}-tenant` };
    const object = await cluster.client.create({ ...kindType(tenant), metadata, spec: TENANT_SPEC });
    await refusesLoosening(kindType(tenant), object, "cluster-wide");
    const locally = await user("local-approver", [APPROVE], [operators]);
    const global = await user("local-approver-edits", [EDIT], [undefined]);
    for (const client of [locally, global]) {
      await annotate(cluster.client, kindType(tenant), object, "Observe");
      await expect(annotate(client, kindType(tenant), object, null)).rejects.toThrow();
    }
    await cluster.client.delete(kindType(tenant), metadata.name);
  });
});

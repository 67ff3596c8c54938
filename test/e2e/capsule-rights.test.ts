import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, describe, expect, it } from "vitest";
import { userConfig } from "../../bench/users";
import { isApiError, KubernetesClient, type LiveObject, type Manifest } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { removeAdmission } from "../admission/leftovers";
import { controlPlane } from "../control-plane";
import { conditionOf, removeUntilGone, untilReady, untilSynced } from "./conditions";
import { kubectl } from "./kubectl";
import { CONFIG_MAP, capsuleTenant, namespace, POD, uniqueName } from "./manifests";
import { apply, client, create, edit, eventsAbout, find, get, remove } from "./objects";
import { useOperator } from "./operator";

afterAll(() => removeAdmission(client)); // once the operator has ended
const operator = useOperator({ args: ["--admission-port", "0"] });

/** Tenants of this test; `KINDSTACK_TRIES=200` is what docs/capsule.md tells of. */
const TRIES = Number(process.env.KINDSTACK_TRIES ?? 8);
const AT_ONCE = 8;
/** So often a tenant's owner tries, before and after it gets rights. */
const PAUSE_MS = 20;
const TRIES_WITH_RIGHTS = 20;

const POLICY = {
  apiVersion: "networking.k8s.io/v1",
  kind: "NetworkPolicy",
  plural: "networkpolicies",
  namespaced: true,
};

const pod = (image: string, name: string, namespace: string): Manifest => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace },
  spec: { containers: [{ name: "app", image }] },
});
const configMap = (name: string, namespace: string): Manifest => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, namespace },
});

async function ownerClient(name: string): Promise<KubernetesClient> {
  const { kubeconfig } = controlPlane();
  return new KubernetesClient(await userConfig(path.dirname(kubeconfig), name, "capsule.clastix.io"));
}

/** Whether it was made; a refusal is an answer, too. */
async function attempt(owner: KubernetesClient, manifest: Manifest): Promise<boolean> {
  try {
    await owner.create(manifest);
    return true;
  } catch (error) {
    if (isApiError(error, 403)) return false;
    throw error;
  }
}

/** A tenant and its namespace at the same moment; the owner tries all that is forbidden, until after it has rights. */
async function forbiddenObjectsOf(name: string): Promise<{ forbidden: number; refusedByPolicy: boolean }> {
  const owner = await ownerClient(name);
  const spec = {
    owner: { kind: "User" as const, name },
    containerRegistries: { allowed: ["docker.io"] },
    resourceQuotas: [{ hard: { "count/configmaps": 1 } }],
  };
  await Promise.all([
    apply(capsuleTenant(name, spec)),
    create(namespace(name, { labels: { "capsule.clastix.io/tenant": name } })),
  ]);
  let withRights = 0;
  for (let round = 0; withRights < TRIES_WITH_RIGHTS; round++) {
    await Promise.all([
      attempt(owner, pod("evil.example.com/app", `evil-${round}`, name)),
      attempt(owner, configMap(`more-${round}`, name)),
    ]);
    const allowed = await attempt(owner, pod("nginx", `allowed-${round}`, name));
    if (allowed) withRights++;
    await delay(PAUSE_MS);
  }
  const pods = (await client.list(POD, { namespace: name })).items;
  const configMaps = (await client.list(CONFIG_MAP, { namespace: name })).items;
  const evil = pods.filter(({ metadata }) => metadata.name.startsWith("evil")).length;
  const made = configMaps.filter(({ metadata }) => metadata.name.startsWith("more")).length;
  const last = await owner.create(pod("evil.example.com/app", "evil-last", name)).catch((error) => String(error));
  await owner.close();
  return { forbidden: evil + Math.max(0, made - 1), refusedByPolicy: String(last).includes("evil.example.com is not") };
}

it("what was there before under a name of Kindstack's is replaced: no field of it stays, and it stalls no tenant", async () => {
  const name = uniqueName("reserved");
  const named = {
    apiVersion: POLICY.apiVersion,
    kind: POLICY.kind,
    metadata: { name: `capsule-${name}-0`, namespace: name },
  };
  const role: Manifest = {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "RoleBinding",
    metadata: { name: `capsule-${name}-0`, namespace: name },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "view" },
  } as Manifest;
  await create(namespace(name));
  await create({
    ...named,
    metadata: { ...named.metadata, finalizers: ["example.com/keep"] },
    spec: { podSelector: {}, ingress: [{}] },
  });
  await create(role);
  const tenant = capsuleTenant(name, { networkPolicies: [{ podSelector: {}, policyTypes: ["Ingress"] }] });
  await apply(tenant);
  await edit(namespace(name), { metadata: { labels: { "capsule.clastix.io/tenant": name } } });

  await eventually(async () => {
    expect((await get(named)).spec).toEqual({ podSelector: {}, policyTypes: ["Ingress"] });
    expect(await get(role)).toMatchObject({ roleRef: { name: "admin" } });
    expect(conditionOf(await get(tenant), "Ready").status).toBe("True");
  });
  await removeUntilGone(tenant);
});

it("a cordoned tenant says so in a condition and refuses what its owner makes, until it is not cordoned any more", async () => {
  const name = uniqueName("cordon");
  const owner = await ownerClient(name);
  const tenant = capsuleTenant(name, { owner: { kind: "User", name } });
  await apply(tenant);
  await create(namespace(name, { labels: { "capsule.clastix.io/tenant": name } }));
  await eventually(async () => expect(await attempt(owner, configMap(uniqueName("a"), name))).toBe(true));

  await edit(tenant, { spec: { cordoned: true } });
  await eventually(async () => expect(conditionOf(await get(tenant), "Cordoned").status).toBe("True"));
  await eventually(async () => {
    await expect(owner.create(configMap(uniqueName("a"), name))).rejects.toThrow("is cordoned");
  });
  await expect(create(pod("nginx", "by-an-administrator", name))).resolves.toHaveProperty("metadata.uid");

  await edit(tenant, { spec: { cordoned: null } });
  await eventually(async () => expect(await attempt(owner, configMap(uniqueName("a"), name))).toBe(true));
  await eventually(async () => expect(conditionOf(await get(tenant), "Cordoned").status).toBe("False"));

  await edit(tenant, { metadata: { labels: { "capsule.clastix.io/cordon": "enabled" } } });
  await eventually(async () => expect(conditionOf(await get(tenant), "Cordoned").status).toBe("True"));
  await owner.close();
  await remove(tenant);
});

it("a namespace that is held while it is being deleted counts in the quota and in the status, which names what holds it, and so does the refusal of another one", async () => {
  const name = uniqueName("held");
  const owner = await ownerClient(name);
  const tenant = capsuleTenant(name, { owner: { kind: "User", name }, namespaceQuota: 1 });
  await apply(tenant);
  await eventually(() => owner.create(namespace(`${name}-a`)));
  const held = configMap("held", `${name}-a`);
  held.metadata.finalizers = ["example.com/held"];
  await eventually(() => owner.create(held));

  // The right to delete it comes with a binding of its own.
  await eventually(() => owner.delete(namespace(`${name}-a`), `${name}-a`));
  await eventually(async () => {
    const live = await get(tenant);
    expect(live.status).toMatchObject({ size: 1, namespaces: [`${name}-a`] });
    expect(conditionOf(live, "NamespacesTerminating").message).toContain("example.com/held");
  });
  // Admission sees it by a watch of its own.
  await eventually(() =>
    expect(owner.create(namespace(`${name}-b`))).rejects.toThrow(
      new RegExp(`all of the 1 namespaces .* ${name}-a is being deleted and waits for: .*example.com/held`),
    ),
  );

  await edit(held, { metadata: { finalizers: null } });
  await eventually(() => owner.create(namespace(`${name}-b`)));
  await eventually(async () => {
    const live = await get(tenant);
    expect(live.status).toMatchObject({ size: 1, namespaces: [`${name}-b`] });
    expect(conditionOf(live, "NamespacesTerminating").status).toBe("False");
  });
  await owner.close();
  await remove(tenant);
});

it("a change of a Tenant that takes rights warns of what may stay of those who had them, is made, and tells of it until a user has looked", async () => {
  const name = uniqueName("dismissed");
  const tenant = capsuleTenant(name, { owner: { kind: "User", name } });
  await apply(tenant);
  await create(namespace(name, { labels: { "capsule.clastix.io/tenant": name } }));
  await eventually(async () => expect(conditionOf(await get(tenant), "Enforced").status).toBe("True"));
  const patch = (spec: object) =>
    kubectl(["patch", "tenants.capsule", name, "--type=merge", "-p", JSON.stringify({ spec })]);
  const told = async () => {
    const live = await untilSynced(tenant);
    const { status, message } = conditionOf(live, "FormerSubjects");
    return { status, message };
  };
  await eventually(async () => expect((await told()).status).toBe("False"));

  await eventually(async () => {
    const { stderr } = await patch({ owner: { name: uniqueName("another") } });
    expect(stderr).toMatch(/Warning: .* may have made RoleBindings and tokens of ServiceAccounts in the tenant/);
    expect(stderr).toContain(`Look for them in: ${name}`);
  });
  expect((await patch({ namespaceQuota: 9 })).stderr).not.toContain("Warning");

  const had = new RegExp(`^(User another-\\w+, )*User ${name} had rights in ${name}\\.`);
  await eventually(async () => expect(await told()).toEqual({ status: "True", message: expect.stringMatching(had) }));
  // As the message says: what they may have made is listed, also with Kindstack's label; then the notice is ended.
  const labels = { "kindstack.dev/owner-uid": "none" };
  await create({ apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "ci", namespace: name, labels } });
  const [look = "", end = ""] = (await told()).message.match(/kubectl .*?(?=\.( |$)|$)/g) ?? [];
  const run = (command: string) => kubectl(command.split(" ").slice(1));
  expect((await run(look)).stdout).toContain("serviceaccount/ci");
  expect(await run(end)).toMatchObject({ exitCode: 0 });
  await eventually(async () => expect((await told()).status).toBe("False"));
  await remove(tenant);
});

describe("of what an owner creates at the same moment where one is allowed", () => {
  const ingress = (name: string, namespace: string): Manifest => ({
    apiVersion: "networking.k8s.io/v1",
    kind: "Ingress",
    metadata: { name, namespace },
    spec: { rules: [{ host: `${namespace}.example.com`, http: { paths: [ROOT] } }] },
  });
  const ROOT = { path: "/", pathType: "Prefix", backend: { service: { name: "web", port: { number: 80 } } } };
  const labels = (name: string) => ({ labels: { "capsule.clastix.io/tenant": name } });
  const reasonsOf = async (object: LiveObject) => (await eventsAbout(object)).map(({ reason }) => reason);

  /** A namespace beyond the quota, and two Ingresses that the webhook was not asked about: no cache knew of it yet. */
  async function createTogether(name: string) {
    await create(namespace(`${name}-a`));
    const ingresses = [await create(ingress("first", `${name}-a`)), await create(ingress("second", `${name}-a`))];
    await apply(capsuleTenant(name, { namespaceQuota: 1, hostnameCollisionScope: "Namespace" }));
    await edit(namespace(`${name}-a`), { metadata: labels(name) });
    await untilReady(capsuleTenant(name));
    await eventually(async () =>
      expect(await get(namespace(`${name}-a`))).toMatchObject({
        metadata: { labels: { "kindstack.dev/hostname-collision": "Namespace" } },
      }),
    );
    // What admission decides by has the namespace and its Ingresses by then.
    await eventually(() =>
      expect(client.apply(ingress("third", `${name}-a`), { dryRun: true })).rejects.toThrow(`${name}-a.example.com`),
    );
    for (const one of ingresses) {
      await edit(one, { spec: { ingressClassName: "any" } }).catch((error: unknown) => {
        if (!isApiError(error, 404)) throw error; // the younger one may have been deleted by now
      });
    }
    // Of two that come within a second, either one may be the surplus.
    const { creationTimestamp = "" } = (await get(namespace(`${name}-a`))).metadata;
    await eventually(() => expect(Date.now()).toBeGreaterThan(Date.parse(creationTimestamp) + 1_000));
    const surplus = await create(namespace(`${name}-b`, labels(name)));
    return { surplus };
  }

  it("the younger one is told of by an Event and on the tenant, and stays", async () => {
    const name = uniqueName("together");
    const { surplus } = await createTogether(name);
    await eventually(async () => {
      expect(conditionOf(await get(capsuleTenant(name)), "Enforced")).toMatchObject({
        status: "False",
        reason: "HostCollision",
        message: expect.stringMatching(
          `${name}-a/(first|second) takes ${name}-a.example.com/ of ${name}-a/(first|second)`,
        ),
      });
    });
    await eventually(async () => expect(await reasonsOf(surplus)).toEqual(["NamespaceQuotaExceeded"]));
    const ingresses = [await get(ingress("first", `${name}-a`)), await get(ingress("second", `${name}-a`))];
    await eventually(async () =>
      expect((await Promise.all(ingresses.map(reasonsOf))).flat()).toEqual(["HostCollision"]),
    );

    await remove(ingress("second", `${name}-a`));
    await eventually(async () =>
      expect(conditionOf(await get(capsuleTenant(name)), "Enforced").reason).toBe("NamespaceQuotaExceeded"),
    );
    expect((await get(surplus)).metadata.deletionTimestamp).toBeUndefined();
    await remove(capsuleTenant(name));
  });

  it("the younger one is deleted where the installation says so", async () => {
    await operator.restart({ env: { KINDSTACK_CAPSULE_DELETE_YOUNGER: "true" } });
    const name = uniqueName("together");
    const { surplus } = await createTogether(name);
    await eventually(async () => {
      const kept = await Promise.all(["first", "second"].map((one) => find(ingress(one, `${name}-a`))));
      expect(kept.filter((one) => one !== undefined)).toHaveLength(1);
    });
    await eventually(async () => {
      const { deletionTimestamp } = (await find(surplus))?.metadata ?? { deletionTimestamp: "gone" };
      expect(deletionTimestamp).toMatch(/^\d{4}-|^gone$/);
    });
    await eventually(async () => expect(await reasonsOf(surplus)).toEqual(["NamespaceQuotaExceeded"]));
    await eventually(async () =>
      expect(conditionOf(await get(capsuleTenant(name)), "Enforced")).toMatchObject({ status: "True" }),
    );
    await remove(capsuleTenant(name));
    await operator.restart();
  });
});

// The last one: what it leaves behind keeps the operator busy for a while.
it(`rights come after enforcement: of ${TRIES} tenants that come with their namespace, none gets anything forbidden`, {
  timeout: 60_000 + TRIES * 10_000,
}, async () => {
  const names = Array.from({ length: TRIES }, (_, index) => uniqueName(`try${index}`));
  const outcomes: Awaited<ReturnType<typeof forbiddenObjectsOf>>[] = [];
  const workers = Array.from({ length: AT_ONCE }, async () => {
    for (let name = names.pop(); name !== undefined; name = names.pop()) {
      outcomes.push(await forbiddenObjectsOf(name));
      await remove(capsuleTenant(name));
    }
  });
  await Promise.all(workers);
  expect(outcomes).toEqual(Array.from({ length: TRIES }, () => ({ forbidden: 0, refusedByPolicy: true })));
});

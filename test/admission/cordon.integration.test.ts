import { beforeAll, describe, expect, it } from "vitest";
import type { KubernetesClient, Manifest } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import {
  HOSTNAME_COLLISION_LABEL,
  QUOTAS_LABEL,
  SERVICES_METADATA_LABEL,
  TENANT_LABEL,
} from "../../stacks/kinds/capsule-tenant/labels";
import { NAMESPACE } from "../providers/kubernetes/test-cluster";
import { CLUSTER_SCOPED, QUESTIONS, rightsExceptOnTenants, servedKinds } from "./cluster-scoped";
import {
  at,
  create,
  expectAcceptance,
  expectRefusal,
  namespaceOf,
  TENANT,
  uniqueName,
  useServedAdmission,
} from "./test-admission";

const admission = useServedAdmission();
const alice = uniqueName("alice");
const free = uniqueName("free");
let asAlice: KubernetesClient;

const EVICTION = { apiVersion: "policy/v1", kind: "Eviction" };
const TOKEN_REQUEST = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} };
const labelled = { metadata: { labels: { a: "b" } } };
const pod: Manifest = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { generateName: "app-" },
  spec: { containers: [{ name: "app", image: "nginx" }] },
};
const service: Manifest = {
  apiVersion: "v1",
  kind: "Service",
  metadata: { name: "web" },
  spec: { ports: [{ port: 80 }] },
};

describe("a cordoned tenant", () => {
  const cordoned = uniqueName("cordoned");
  const account = `system:serviceaccount:${cordoned}:robot`;
  let asAccount: KubernetesClient;
  let app: string;
  beforeAll(async () => {
    asAlice = await admission.user(alice);
    const owner = { kind: "User", name: alice } as const;
    await admission.tenant(cordoned, {
      owner,
      hostnameCollisionScope: "Cluster",
      resourceQuotas: [{ hard: { "count/configmaps": "5" } }],
      storageClasses: { allowed: ["fast"] },
    });
    await admission.tenant(free, { owner });
    await admission.tenantNamespace(free, free, alice);
    await admission.tenantNamespace(cordoned, cordoned, alice);
    // All that selects a namespace for a webhook.
    const labels = {
      [HOSTNAME_COLLISION_LABEL]: "Cluster",
      [QUOTAS_LABEL]: "objects",
      [SERVICES_METADATA_LABEL]: "true",
    };
    await admission.client.mergePatch(NAMESPACE, cordoned, undefined, { metadata: { labels } });
    // As the owner may have done before.
    await admission.bindOwner(cordoned, account);
    asAccount = await admission.user(account, "system:serviceaccounts");
    app = (await eventually(() => create(asAccount, at(cordoned, pod)))).metadata.name;
    await admission.grant(cordoned, account, { resources: ["pods/eviction"], verbs: ["create"] });
    await admission.client.mergePatch(TENANT, cordoned, undefined, { spec: { cordoned: true } });
    await admission.bindPolicies(cordoned);
    await eventually(() => expectRefusal(asAlice, at(cordoned, service), `the tenant ${cordoned} is cordoned`));
  });
  const refused = (action: Promise<unknown>) => expect(action).rejects.toThrow("is cordoned");

  it.each<[string, () => Promise<unknown>]>([
    ["a creation", () => create(asAccount, at(cordoned, pod))],
    ["an update", () => asAccount.mergePatch(pod, app, cordoned, labelled)],
    ["a deletion", () => asAccount.delete(pod, app, cordoned)],
    ["an eviction", () => subresource("eviction", { ...EVICTION, metadata: { name: app } })],
    ["a token of an account", () => asAlice.json("POST", tokenPath, { body: TOKEN_REQUEST })],
    ["a change of the namespace", () => asAlice.mergePatch(NAMESPACE, cordoned, undefined, labelled)],
    ["the end of the namespace", () => asAlice.delete(NAMESPACE, cordoned)],
    ["exec", () => subresource("exec?command=sh&stdout=true")],
    ["attach", () => subresource("attach?stdout=true")],
    ["a forwarded port", () => subresource("portforward")],
  ])("refuses %s to those who got rights from its owner", (_, action) => refused(action()));

  const tokenPath = `/api/v1/namespaces/${cordoned}/serviceaccounts/default/token`;
  const subresource = (name: string, body?: object) =>
    asAccount.json("POST", `/api/v1/namespaces/${cordoned}/pods/${app}/${name}`, { body });

  it("lets administrators, the control plane and what runs go on", async () => {
    const controller = await admission.user("system:serviceaccount:kube-system:x", "system:masters");
    const lease = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name: "leader" } };
    await expectAcceptance(admission.client, at(cordoned, pod));
    await expectAcceptance(controller, at(cordoned, lease));
    await expectAcceptance(asAlice, at(free, service));
  });

  describe("concerns nothing else: a controller of another namespace", () => {
    let controller: KubernetesClient;
    beforeAll(async () => {
      const name = "system:serviceaccount:csi:provisioner";
      controller = await admission.user(name, "system:serviceaccounts:csi");
      for (const right of await rightsExceptOnTenants(admission.client, name)) await admission.create(right);
      await eventually(() => expectAcceptance(controller, namespaceOf(uniqueName("new"))));
    });

    it("is shown with every type of cluster-scoped objects that the API server stores, and each that it answers", async () => {
      const served = await servedKinds(admission.client);
      expect(Object.keys(CLUSTER_SCOPED).sort()).toEqual(served.stored.sort());
      expect(Object.keys(QUESTIONS).sort()).toEqual(served.answered.sort());
      expect(Object.keys(CLUSTER_SCOPED).length).toBeGreaterThanOrEqual(20);
    });

    it.each(Object.entries(CLUSTER_SCOPED))("creates, changes and deletes a %s", async (_, manifest) => {
      const { metadata } = await create(controller, manifest);
      expect(await controller.mergePatch(manifest, metadata.name, undefined, labelled)).toMatchObject(labelled);
      await controller.delete(manifest, metadata.name);
    });

    it.each(Object.entries(QUESTIONS))("asks by a %s", async (kind, manifest) => {
      expect(await create(controller, manifest)).toMatchObject({ kind });
    });

    it("creates namespaces, and changes those of no tenant and of other tenants", async () => {
      await expectAcceptance(controller, namespaceOf(uniqueName("new")));
      for (const name of [free, admission.namespace]) {
        expect(await controller.mergePatch(NAMESPACE, name, undefined, labelled)).toMatchObject(labelled);
      }
    });

    it("is refused in the tenant's namespaces, and these themselves", async () => {
      await refused(create(controller, at(cordoned, pod)));
      await refused(controller.mergePatch(NAMESPACE, cordoned, undefined, { metadata: { labels: { c: "d" } } }));
      const joining = namespaceOf(uniqueName("new"), { labels: { [TENANT_LABEL]: cordoned } });
      await expect(create(controller, joining)).rejects.toThrow("ValidatingAdmissionPolicy"); // whichever comes first
    });
  });
});

import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import { findCondition } from "../../stacks/contract/condition";
import { type AnyKind, kindName, statusOf } from "../../stacks/contract/kind";
import type { PolicyRule } from "../../stacks/contract/rbac";
import { kinds } from "../../stacks/index";
import { parseConfiguration } from "../../stacks/platform/configuration";
import { platformManifests } from "../../stacks/platform/manifests";
import { removeAdmission } from "../admission/leftovers";
import { controlPlane } from "../control-plane";
import { TestDatabase } from "../providers/postgres/database";
import { ApiRecorder, type Right } from "./api-recorder";
import { eventually } from "./eventually";
import { client, sampleFile, uniqueName } from "./objects";
import { TestOperator } from "./operator";

const NAMESPACE = "kindstack-system";
const installed = parseAllDocuments(fs.readFileSync(path.resolve(__dirname, "../../deploy/install.yaml"), "utf8")).map(
  (document) => document.toJS() as Manifest,
);
const find = (kind: string) => installed.find((manifest) => manifest.kind === kind) as Manifest;

/** Server-side apply as `kubectl apply --server-side` does it, with unknown fields refused. */
async function apply(manifest: Manifest, query: Record<string, string> = {}): Promise<LiveObject> {
  const { name, namespace } = manifest.metadata;
  const { apiVersion, plural } = await client.resourceType(manifest.apiVersion, manifest.kind);
  const group = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  return client.json("PATCH", `${group}${namespace ? `/namespaces/${namespace}` : ""}/${plural}/${name}`, {
    query: { fieldManager: "kubectl", force: "true", fieldValidation: "Strict", ...query },
    contentType: "application/apply-patch+yaml",
    body: manifest,
  });
}

async function read(manifest: Pick<Manifest, "apiVersion" | "kind" | "metadata">): Promise<LiveObject | undefined> {
  const { name = "", namespace } = manifest.metadata;
  return client.get(await client.resourceType(manifest.apiVersion, manifest.kind), name, namespace);
}

async function remove(manifest: Manifest): Promise<void> {
  const { name = "", namespace } = manifest.metadata;
  await client.delete(await client.resourceType(manifest.apiVersion, manifest.kind), name, namespace);
}

async function tokenOf(namespace: string, account: string): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`;
  const { status } = await client.json<{ status: { token: string } }>("POST", path, {
    body: { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} },
  });
  return status.token;
}

beforeAll(async () => {
  for (const manifest of installed) await apply(manifest);
});
afterAll(async () => {
  for (const manifest of installed) if (manifest.kind !== "CustomResourceDefinition") await remove(manifest);
  await eventually(async () => expect(await read(find("Namespace"))).toBeUndefined());
});

describe("deploy/install.yaml", () => {
  it("is understood by the API server, every field of it, and can be applied again", async () => {
    for (const manifest of installed) {
      const before = await read(manifest);
      const { metadata } = await apply(manifest, { dryRun: "All" });
      expect(metadata.generation, manifest.kind).toBe(before?.metadata.generation);
    }
  });

  it("runs a Pod that the restricted standard lets into the namespace", async () => {
    const { template } = find("Deployment").spec as { template: { metadata: object; spec: object } };
    const pod = { apiVersion: "v1", kind: "Pod", ...template, metadata: { ...template.metadata, name: "dry" } };
    const create = (body: object) =>
      client.json("POST", `/api/v1/namespaces/${NAMESPACE}/pods`, {
        query: { dryRun: "All", fieldValidation: "Strict" },
        body,
      });

    await expect(create(pod)).resolves.toMatchObject({ kind: "Pod" });
    await expect(create({ ...pod, spec: { ...template.spec, securityContext: {} } })).rejects.toThrow("restricted");
  });
});

describe("an installation with everything configured", () => {
  it("is understood by the API server, every field of it", async () => {
    const configuration = parseConfiguration(
      {
        passphrase: "p",
        backendUrl: "postgres://user:password@db/state",
        postgresHost: "db",
        postgresDatabase: "app",
        postgresUser: "u",
        postgresPassword: "p",
        postgresTables: "students",
        memcachedImage: "memcached:1.6",
        imagePullSecrets: "registry",
        environmentSecrets: "cloud",
        serviceAccountAnnotations: '{"example.com/role":"r"}',
      },
      "1.2.3",
    );

    const manifests = await platformManifests(configuration, kinds);

    expect(manifests.map(({ kind }) => kind)).toContain("Secret");
    for (const manifest of manifests) {
      await expect(apply(manifest, { dryRun: "All" }), manifest.kind).resolves.toBeDefined();
    }
  });
});

describe("the operator under the installed service account", () => {
  const database = new TestDatabase(controlPlane().env);
  const operator = new TestOperator({ env: { PSQL_DBNAME: database.name }, installCrds: false });
  const directory = path.join(operator.directory, "account");
  /** A namespace of the sample of Capsule's Tenant, so that there is something to be made. */
  const capsuleNamespace: Manifest = {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: uniqueName("oil"), labels: { "capsule.clastix.io/tenant": "oil" } },
  };
  let recorder: ApiRecorder;
  let token: string;

  beforeAll(async () => {
    await database.open();
    await database.query("CREATE TABLE students (id text PRIMARY KEY, name text, age integer, country text)");
    token = await tokenOf(NAMESPACE, "kindstack");
    recorder = await ApiRecorder.start(controlPlane().kubeconfig);
    fs.mkdirSync(directory, { recursive: true });
    const kubeconfig = path.join(directory, "kubeconfig");
    fs.writeFileSync(
      kubeconfig,
      JSON.stringify({
        apiVersion: "v1",
        kind: "Config",
        "current-context": "operator",
        contexts: [{ name: "operator", context: { cluster: "recorded", user: "operator" } }],
        clusters: [{ name: "recorded", cluster: { server: recorder.url, "insecure-skip-tls-verify": true } }],
        users: [{ name: "operator", user: { token } }],
      }),
    );
    await apply(capsuleNamespace);
    await operator.start({
      args: ["--admission-port", "0", "--metrics-port", "0"],
      env: { KUBECONFIG: kubeconfig, KINDSTACK_NAMESPACE: NAMESPACE },
    });
  });
  afterAll(async () => {
    await operator.dispose();
    await removeAdmission(client);
    await remove(capsuleNamespace);
    recorder?.close();
    await database.close();
  });

  const until = (manifest: Manifest, status: "True" | "False") =>
    eventually(async () => {
      const object = await read(manifest);
      const ready = object && findCondition(statusOf(object).conditions, "Ready");
      expect(ready, operator.log.slice(-2_000)).toMatchObject({
        status,
        observedGeneration: object?.metadata.generation,
      });
    });
  const sample = (kind: AnyKind): Manifest => {
    const { manifest } = sampleFile(path.basename(kind.directory));
    const namespace = kind.scope === "Namespaced" ? { namespace: "default" } : {};
    return { ...manifest, metadata: { name: manifest.metadata.name ?? "", ...namespace } };
  };
  /** For each kind, by its name, what of its sample is changed. */
  const changes: Record<string, object> = {
    "tenants.multitenancy.codereliant.io": { adminEmail: "other@example.com", adminGroups: [] },
    "tenants.capsule.clastix.io": { namespaceQuota: 4, resourceQuotas: [{ hard: { pods: "9" } }] },
    "postgreswriters.demo.yash.com": { age: 24 },
    "podsets.batch.tutorial.kubebuilder.io": { replicas: 1 },
    "memcacheds.cache.example.com": { size: 2 },
  };

  it.each(kinds.map((kind) => [kindName(kind), kind] as const))(
    "creates, changes and deletes the sample of %s",
    async (_name, kind) => {
      const manifest = sample(kind);
      await apply(manifest);
      await until(manifest, "True");

      await apply({ ...manifest, spec: { ...(manifest.spec as object), ...changes[kindName(kind)] } });
      await until(manifest, "True");

      await remove(manifest);
      await eventually(async () => expect(await read(manifest), operator.log.slice(-2_000)).toBeUndefined());
    },
  );

  it("counts what happens again and again in one Event", async () => {
    const manifest: Manifest = {
      apiVersion: "demo.yash.com/v1",
      kind: "PostgresWriter",
      metadata: { name: uniqueName("waiting"), namespace: "default" },
      spec: { table: "absent", name: "alex", age: 23, country: "canada" },
    };
    await apply(manifest);
    await until(manifest, "False");

    await eventually(() => expect(recorder.used).toContain("patch events.k8s.io/events"));

    await remove(manifest);
    await eventually(async () => expect(await read(manifest)).toBeUndefined());
  });

  it("shows its metrics to whoever has the role for that, and to nobody else", async () => {
    const binding: Manifest = {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata: { name: uniqueName("metrics") },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "kindstack-metrics-reader" },
      subjects: [{ kind: "ServiceAccount", name: "default", namespace: "default" }],
    };
    const reader = await tokenOf("default", "default");
    await apply(binding);
    try {
      expect((await operator.scrape(token)).status).toBe(403); // the operator's own
      await eventually(async () => expect((await operator.scrape(reader)).text).toContain("kindstack_updates_total"));
    } finally {
      await remove(binding);
    }
  });

  it("was refused nothing", () => {
    expect([...recorder.forbidden]).toEqual([]);
    expect(operator.log).not.toMatch(/forbidden/i);
  });

  it("was granted nothing that it does not use, but for what admission asks for", () => {
    const granted = (find("ClusterRole").rules as PolicyRule[]).flatMap(rightsOf);

    const unused = granted.filter((right) => !recorder.used.has(right));

    expect(unused.sort()).toEqual([
      // To make the RoleBindings of either kind of Tenant.
      "bind rbac.authorization.k8s.io/clusterroles",
      "bind rbac.authorization.k8s.io/clusterroles",
      "update batch.tutorial.kubebuilder.io/podsets/finalizers", // OwnerReferencesPermissionEnforcement
      "update cache.example.com/memcacheds/finalizers",
      "update capsule.clastix.io/tenants/finalizers",
    ]);
  });

  it("can hand out the roles admin and edit and no other", async () => {
    const asAccount = async (role: string) => {
      const response = await fetch(
        `${recorder.url}/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings?dryRun=All`,
        {
          method: "POST",
          headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
          body: JSON.stringify({
            apiVersion: "rbac.authorization.k8s.io/v1",
            kind: "RoleBinding",
            metadata: { name: uniqueName("binding") },
            roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role },
          }),
        },
      );
      return response.status;
    };
    expect(await Promise.all(["admin", "edit", "cluster-admin", "view"].map(asAccount))).toEqual([201, 201, 403, 403]);
  });

  function rightsOf({ apiGroups, resources, verbs }: PolicyRule): Right[] {
    return apiGroups.flatMap((group) =>
      resources.flatMap((resource) => verbs.map((verb) => `${verb} ${group}/${resource}`)),
    );
  }
});

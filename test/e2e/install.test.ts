import { execFile, execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { Agent, request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { known, type LiveObject, type Manifest, type ResourceType } from "../../providers/kubernetes/client";
import { MAX_REQUEST_BYTES } from "../../src/preview/api";
import { eventually } from "../../src/testing/eventually";
import { resolveBinary } from "../../src/toolchain/resolve";
import { ADMISSION_LABEL } from "../../stacks/contract/admission";
import type { PolicyRule } from "../../stacks/contract/capabilities";
import { findCondition } from "../../stacks/contract/condition";
import { DEFINITION_TYPE } from "../../stacks/contract/crd";
import { INSTALLED_IN_LABEL } from "../../stacks/contract/installation";
import { type AnyKind, kindName, statusOf } from "../../stacks/contract/kind";
import { MODE_ANNOTATION } from "../../stacks/contract/mode";
import { INSPECTION_SECRET } from "../../stacks/contract/rbac";
import { kinds } from "../../stacks/kinds/index";
import { withLoadedKinds } from "../../stacks/platform/kinds";
import { platformManifests } from "../../stacks/platform/manifests";
import { parseConfiguration } from "../../stacks/platform/parse-configuration";
import { removeAdmission } from "../admission/leftovers";
import { controlPlane } from "../control-plane";
import { testDirectory, useDirectory } from "../directories";
import { useDatabase } from "../providers/postgres/database";
import { bindingFor } from "../rights";
import { testTools } from "../tools";
import { ApiRecorder, type Right } from "./api-recorder";
import {
  client,
  edit,
  find,
  get,
  memcached,
  namespace,
  postgresWriter,
  remove,
  removeUntilGone,
  sampleFile,
  tokenOf,
  uniqueName,
  untilCondition,
  untilGone,
  untilSynced,
} from "./objects";
import { kindstack, TestOperator } from "./operator";

const NAMESPACE = "kindstack-system";
const installed = parseAllDocuments(fs.readFileSync(path.resolve(__dirname, "../../deploy/install.yaml"), "utf8")).map(
  (document) => document.toJS() as Manifest,
);
const installedOf = (kind: string) => installed.find((manifest) => manifest.kind === kind) as Manifest;

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

function withoutBookkeeping({ metadata, ...object }: LiveObject): object {
  const { managedFields: _, resourceVersion: __, ...rest } = metadata;
  return { ...object, metadata: rest };
}

/** A kubeconfig with that token, of an API server that records what it is asked. */
function recordedKubeconfig(recorder: ApiRecorder, token: string, directory: string): string {
  const file = path.join(directory, "account", "kubeconfig");
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(
    file,
    JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      "current-context": "operator",
      contexts: [{ name: "operator", context: { cluster: "recorded", user: "operator" } }],
      clusters: [{ name: "recorded", cluster: { server: recorder.url, "insecure-skip-tls-verify": true } }],
      users: [{ name: "operator", user: { token } }],
    }),
  );
  return file;
}

/** Field managers of Flux and of Argo CD. */
const GITOPS = ["kustomize-controller", "argocd-controller"];

/** What Flux would change, by its own code. */
async function fluxDiff(manifests: readonly Manifest[]): Promise<string> {
  return execFileSync(await resolveBinary(testTools["flux-diff"]), {
    input: JSON.stringify(manifests),
    env: { ...process.env, KUBECONFIG: controlPlane().kubeconfig },
    encoding: "utf8",
  });
}

/** That nothing would change, by a dry run of a GitOps tool's server-side apply. */
async function expectNoDifference(manifests: readonly Manifest[], fieldManager: string): Promise<void> {
  for (const manifest of manifests) {
    const predicted = await apply(manifest, { fieldManager, dryRun: "All" });
    expect(withoutBookkeeping(predicted)).toEqual(withoutBookkeeping(await get(manifest)));
  }
}

beforeAll(async () => {
  for (const manifest of installed) await apply(manifest);
});
afterAll(async () => {
  for (const manifest of installed) if (manifest.kind !== "CustomResourceDefinition") await remove(manifest);
  await untilGone(installedOf("Namespace"));
});

describe("deploy/install.yaml", () => {
  it("is understood by the API server, every field of it, and can be applied again", async () => {
    for (const manifest of installed) {
      const before = await find(manifest);
      const { metadata } = await apply(manifest, { dryRun: "All" });
      expect(metadata.generation, manifest.kind).toBe(before?.metadata.generation);
    }
  });

  it("runs a Pod that the restricted standard lets into the namespace", async () => {
    const { template } = installedOf("Deployment").spec as { template: { metadata: object; spec: object } };
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

it("an installation with everything configured is understood by the API server, every field of it", async () => {
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
    await expect(apply(manifest, { dryRun: "All" }), manifest.kind).resolves.toHaveProperty("metadata.uid");
  }
});

describe("the operator under the installed service account", () => {
  const database = useDatabase();
  const operator = new TestOperator({ env: { PSQL_DBNAME: database.name }, installCrds: false });
  /** A namespace of the sample of Capsule's Tenant, so that exists something to make. */
  const capsuleNamespace = namespace(uniqueName("oil"), { labels: { "capsule.clastix.io/tenant": "oil" } });
  let recorder: ApiRecorder;
  let token: string;

  beforeAll(async () => {
    await database.query("CREATE TABLE students (id text PRIMARY KEY, name text, age integer, country text)");
    token = await tokenOf(NAMESPACE, "kindstack");
    recorder = await ApiRecorder.start(controlPlane().kubeconfig);
    const kubeconfig = recordedKubeconfig(recorder, token, operator.directory);
    await apply(capsuleNamespace);
    await operator.start({
      args: [
        "--admission-port",
        "0",
        "--admission-owner",
        "kindstack-admission",
        "--metrics-port",
        "0",
        "--preview-port",
        "0",
      ],
      env: { KUBECONFIG: kubeconfig, KINDSTACK_NAMESPACE: NAMESPACE },
    });
  });
  afterAll(async () => {
    await operator.dispose();
    await removeAdmission(client);
    await remove(capsuleNamespace);
    recorder?.close();
  });

  const until = (manifest: Manifest, status: "True" | "False") =>
    eventually(async () => {
      const object = await find(manifest);
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
      await eventually(async () => expect(await find(manifest), operator.log.slice(-2_000)).toBeUndefined());
    },
  );

  it("plans what waits for an approval, applies it then, and removes the plan", async () => {
    const { metadata, ...manifest } = memcached(uniqueName("waiting"));
    const waiting = { ...manifest, metadata: { ...metadata, annotations: { [MODE_ANNOTATION]: "Propose" } } };
    await apply(waiting);
    await untilCondition(waiting, "Synced", "False", "WaitsForApproval");
    kindstack(["approve", "memcacheds", metadata.name ?? "", "-n", "default", "--yes"]);
    await untilSynced(waiting);
    await edit(waiting, { metadata: { annotations: { [MODE_ANNOTATION]: null } } });
    await removeUntilGone(waiting);
  });

  it("counts what happens again and again in one Event", async () => {
    const manifest = postgresWriter(uniqueName("waiting"), { table: "absent" });
    await apply(manifest);
    await until(manifest, "False");

    await eventually(() => expect(recorder.used).toContain("patch events.k8s.io/events"));

    await removeUntilGone(manifest);
  });

  it("shows its metrics to anyone who has the role for that, and to no other client", async () => {
    const account = { kind: "ServiceAccount", name: "default", namespace: "default" };
    const binding = bindingFor([account], "kindstack-metrics-reader", { name: uniqueName("metrics") });
    const reader = await tokenOf("default", "default");
    await apply(binding);
    try {
      expect((await operator.scrape(token)).status).toBe(403); // the operator's own
      await eventually(async () => expect((await operator.scrape(reader)).text).toContain("kindstack_updates_total"));
    } finally {
      await remove(binding);
    }
  });

  describe("asked for previews", () => {
    const object: Manifest & { spec: object } = {
      apiVersion: "multitenancy.codereliant.io/v1",
      kind: "Tenant",
      metadata: { name: uniqueName("asked") },
      spec: { adminEmail: "before@example.com", namespaces: [uniqueName("asked")] },
    };
    const namespaced = uniqueName("asked");
    const manifests: Manifest[] = [];
    let address: string;
    let ca: string;
    /** May ask for previews of everything, and read all objects. */
    let reader: string;
    /** May do both in one namespace only. */
    let limited: string;

    /** Runs a command as CI does: with a token, and nothing else. */
    const ask = (words: string[], bearer: string, environment: Record<string, string> = {}) =>
      new Promise<{ exitCode: number; stdout: string; stderr: string }>((resolve) => {
        const env = { PATH: process.env.PATH, HOME: process.env.HOME, KUBECONFIG: "/nowhere", KINDSTACK_TOKEN: bearer };
        const main = path.resolve(__dirname, "../../dist/src/cli/main.js");
        const server = bearer === "" ? [] : ["--server", address, "--server-ca", ca];
        execFile(
          process.execPath,
          [main, ...words, ...server],
          { env: { ...env, ...environment }, cwd: operator.directory },
          (error, stdout, stderr) => resolve({ exitCode: error === null ? 0 : Number(error.code), stdout, stderr }),
        );
      });
    const post = (pathname: string, body: string, bearer: string) =>
      request(new URL(pathname, address), {
        method: "POST",
        body,
        headers: { authorization: `Bearer ${bearer}` },
        dispatcher: new Agent({ connect: { ca: fs.readFileSync(ca, "utf8") } }),
      }).then(({ statusCode }) => statusCode);

    beforeAll(async () => {
      await apply(object);
      await until(object, "True");
      address = `https://localhost:${/"previews":"[^"]*:(\d+)"/.exec(operator.log)?.[1]}`;
      const secret = await find({
        apiVersion: "v1",
        kind: "Secret",
        metadata: { name: INSPECTION_SECRET, namespace: NAMESPACE },
      });
      ca = path.join(operator.directory, "ca.crt");
      fs.writeFileSync(
        ca,
        Buffer.from((secret as LiveObject & { data: Record<string, string> }).data["ca.crt"] ?? "", "base64"),
      );

      const roleName = uniqueName("asks");
      const role: Manifest = {
        apiVersion: "rbac.authorization.k8s.io/v1",
        kind: "ClusterRole",
        metadata: { name: roleName },
        rules: [
          { apiGroups: ["kindstack.dev"], resources: ["previews"], verbs: ["create", "get"] },
          ...kinds.map(({ group, plural }) => ({ apiGroups: [group], resources: [plural], verbs: ["get", "list"] })),
        ],
      };
      const account = (name: string) => ({ kind: "ServiceAccount", name, namespace: namespaced });
      const made: Manifest[] = [
        namespace(namespaced),
        ...["reader", "limited"].map((name) => ({
          apiVersion: "v1",
          kind: "ServiceAccount",
          metadata: { name, namespace: namespaced },
        })),
        role,
        bindingFor([account("reader")], roleName, { name: uniqueName("asks") }),
        bindingFor([account("limited")], roleName, { name: "asks", namespace: namespaced }),
      ];
      for (const manifest of made) await apply(manifest);
      manifests.push(...made.reverse());
      [reader, limited] = [await tokenOf(namespaced, "reader"), await tokenOf(namespaced, "limited")];

      const changed = { ...object, spec: { ...object.spec, adminEmail: "after@example.com" } };
      const documents = [
        changed,
        ...kinds.map((kind) => ({ ...sample(kind), metadata: { ...sample(kind).metadata, name: uniqueName("new") } })),
      ];
      fs.writeFileSync(
        path.join(operator.directory, "objects.json"),
        JSON.stringify({ apiVersion: "v1", kind: "List", items: documents }),
      );
      const podSet = {
        ...sample(kinds.find(({ plural }) => plural === "podsets") as AnyKind),
        metadata: { name: "pods", namespace: namespaced },
      };
      fs.writeFileSync(path.join(operator.directory, "podset.json"), JSON.stringify(podSet));
    });
    afterAll(async () => {
      for (const manifest of [object, ...manifests]) await remove(manifest);
      await untilGone(object); // another operator's backend has no stack of it
    });

    it("gives the report that a preview with all credentials gives", async () => {
      const words = ["preview", "-f", "objects.json", "-o", "json"];
      const asked = await ask(words, reader);
      const own = await ask(words, "", {
        ...controlPlane().env,
        KUBECONFIG: controlPlane().kubeconfig,
        PULUMI_BACKEND_URL: `file://${operator.stateDirectory}`,
        PSQL_DBNAME: database.name,
      });

      expect([asked.stderr, own.stderr]).toEqual(["", ""]);
      expect(asked.stdout).toContain("after@example.com");
      // Names are random; what is checked by a dry run depends on the rights of who asks.
      const named = (report: string) =>
        JSON.parse(report.replaceAll(/-pod-\w{5}"/g, '-pod-*"'), (key, value: unknown) =>
          ["checked", "notChecked", "hidden", "validatedBy", "notValidated", "notes"].includes(key) ? undefined : value,
        );
      expect(asked.stdout).toContain('"notValidated": "no right: ');
      expect(own.stdout).toContain('"validatedBy": "server"');
      expect(own.stdout).toContain('"checked": true');
      expect(named(asked.stdout)).toEqual(named(own.stdout));
    });

    it("tells what the stack of an object has gone through and made", async () => {
      const name = object.metadata.name ?? "";
      const [history, outputs, diff] = await Promise.all([
        ask(["history", "tenant.multitenancy", name, "-o", "json"], reader),
        ask(["outputs", "tenant.multitenancy", name, "-o", "json"], reader),
        ask(["diff", "tenant.multitenancy", name, "-o", "json"], reader),
      ]);

      expect(JSON.parse(history.stdout)[0]).toMatchObject({ kind: "update", result: "succeeded" });
      expect(JSON.parse(outputs.stdout)).toMatchObject([{ type: "Namespace" }]);
      expect(JSON.parse(diff.stdout)).toMatchObject({ summary: { none: 1 } });
    });

    it("shows a state to those alone who may get states.kindstack.dev", async () => {
      expect(await ask(["state", "export", "tenant.multitenancy", object.metadata.name ?? ""], reader)).toMatchObject({
        exitCode: 1,
        stderr: expect.stringContaining("may not get states.kindstack.dev"),
      });
      const state = await ask(
        ["state", "export", "tenant.multitenancy", object.metadata.name ?? ""],
        await adminToken(),
      );
      expect(JSON.parse(state.stdout)).toMatchObject({ version: expect.any(Number) });
    });

    it("goes by the caller's rights in each namespace, and on each object", async () => {
      expect(await ask(["preview", "-f", "podset.json", "-o", "json"], limited)).toMatchObject({ exitCode: 0 });
      const refused = await ask(["preview", "-f", "objects.json"], limited);
      expect(refused.stderr).toMatch(/may not (create previews.kindstack.dev|get tenants)/);
      expect((await ask(["diff", "--all"], limited)).stderr).toContain("in all namespaces");
    });

    it("tells nothing to who is not known, and refuses what is too large or not understood", async () => {
      expect(await ask(["history", "tenant.multitenancy", "any"], "garbage")).toMatchObject({
        exitCode: 1,
        stderr: expect.stringContaining("does not know the token"),
      });
      expect(await post("/v1/nothing", "{}", "garbage")).toBe(401);
      expect(await post("/v1/nothing", "{}", reader)).toBe(404);
      expect(await post("/v1/preview", "{}", reader)).toBe(400);
      expect(await post("/v1/preview", "x".repeat(MAX_REQUEST_BYTES + 1), reader)).toBe(413);
    });

    async function adminToken(): Promise<string> {
      const account = { kind: "ServiceAccount", name: "default", namespace: namespaced };
      const binding = bindingFor([account], "cluster-admin", { name: uniqueName("admin") });
      await apply(binding);
      manifests.push(binding);
      return tokenOf(namespaced, "default");
    }
  });

  it("was refused nothing", () => {
    expect([...recorder.forbidden]).toEqual([]);
    expect(operator.log).not.toMatch(/forbidden/i);
  });

  it("was granted nothing that it does not use, but for what admission asks for", () => {
    // The others are for users.
    const roles = installed.filter(
      ({ kind, metadata }) => kind === "ClusterRole" && !/-(reader|view|edit)$/.test(metadata.name ?? ""),
    );
    const granted = new Set(roles.flatMap(({ rules }) => (rules as PolicyRule[]).flatMap(rightsOf)));

    const unused = [...granted].filter((right) => !recorder.used.has(right));

    expect(unused.sort()).toEqual([
      // To make the RoleBindings of either kind of Tenant.
      "bind rbac.authorization.k8s.io/clusterroles",
      // When a tenant no longer wants them; at its end they go with its namespaces.
      "delete /limitranges",
      "delete kindstack.dev/approvals", // once they have expired
      "delete networking.k8s.io/networkpolicies",
      "propose kindstack.dev/plans", // a policy asks for it
      "update batch.tutorial.kubebuilder.io/podsets/finalizers", // OwnerReferencesPermissionEnforcement
    ]);
  });

  it.each(GITOPS)(
    "differs in nothing from what is applied by %s, by a dry run of that tool's server-side apply",
    (fieldManager) => expectNoDifference(installed, fieldManager),
  );

  it("differs in nothing for Flux, by its own code, which would see a changed field", async () => {
    const deployment = installedOf("Deployment");

    expect(await fluxDiff(installed)).toBe("");
    expect(await fluxDiff([{ ...deployment, spec: { ...(deployment.spec as object), minReadySeconds: 1 } }])).toBe(
      `Deployment/${NAMESPACE}/kindstack configured\n`,
    );
  });

  it("leaves nothing of admission behind when its role is deleted, as an uninstallation does", async () => {
    const webhooks = await client.resourceType("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration");
    const made = async () => {
      const policies = await client.resourceType("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy");
      const roles = await client.resourceType("rbac.authorization.k8s.io/v1", "ClusterRole");
      const lists = await Promise.all(
        [webhooks, policies, roles].map((type) => client.list(type, { labelSelector: ADMISSION_LABEL })),
      );
      return lists.flatMap(({ items }) => items.map(({ metadata }) => metadata.name));
    };
    expect(await made()).toContain("tenants.capsule.clastix.io");
    const role = installed.find(({ metadata }) => metadata.name === "kindstack-admission") as Manifest;

    await remove(role);

    await eventually(async () => expect(await made()).toEqual([]));
    await apply(role); // the operator makes them again, under the new role
    await eventually(async () => expect(await made()).toContain("tenants.capsule.clastix.io"));
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

it("an operator in another namespace refuses to serve beside the installation, whatever its rights, and names its namespace", () => {
  const directory = testDirectory();
  const env = { PULUMI_BACKEND_URL: `file://${directory}`, KINDSTACK_WORK_DIR: path.join(directory, "work") };
  expect(() => kindstack(["run", "--install-crds", "--http-port", "0"], env)).toThrow(
    `Kindstack is installed in the namespace ${NAMESPACE}, and a cluster has one installation`,
  );
});

describe("an operator of chosen kinds under the rights of their installation", () => {
  const operator = new TestOperator({ installCrds: false });
  let chosen: Manifest[];
  let recorder: ApiRecorder;

  beforeAll(async () => {
    const values = { kinds: "podsets", crds: "false", passphrase: "p" };
    const { configuration, kinds: podSets } = withLoadedKinds(parseConfiguration(values, "1.2.3"));
    chosen = (await platformManifests(configuration, podSets)).filter(({ kind }) => kind !== "Deployment");
    for (const manifest of chosen) await apply(manifest);
    recorder = await ApiRecorder.start(controlPlane().kubeconfig);
    const kubeconfig = recordedKubeconfig(recorder, await tokenOf(NAMESPACE, "kindstack"), operator.directory);
    await operator.start({
      args: ["--kinds", "podsets", "--admission-port", "0", "--metrics-port", "0"],
      env: { KUBECONFIG: kubeconfig, KINDSTACK_NAMESPACE: NAMESPACE },
    });
  });
  afterAll(async () => {
    await operator.dispose();
    recorder?.close();
    for (const manifest of installed) await apply(manifest);
  });

  it("serves them, asks for nothing that belongs to the others and is refused nothing", async () => {
    const manifest: Manifest = {
      apiVersion: "batch.tutorial.kubebuilder.io/v1",
      kind: "PodSet",
      metadata: { name: uniqueName("chosen"), namespace: "default" },
      spec: { replicas: 1 },
    };
    await apply(manifest);
    await eventually(async () => {
      const object = await find(manifest);
      expect(object && findCondition(statusOf(object).conditions, "Ready"), operator.log.slice(-2_000)).toMatchObject({
        status: "True",
      });
    });
    await removeUntilGone(manifest);

    expect([...recorder.forbidden]).toEqual([]);
    const types = [...recorder.used].join(" ");
    expect(types).toContain("podsets");
    expect(types).not.toMatch(/tenants|postgreswriters|memcacheds|deployments|admissionregistration/);
  });
});

describe("an operator of a kind that serves several versions", () => {
  const directory = useDirectory();
  const folder = path.join(directory, "fleet");
  const group = `${uniqueName("fleets")}.example.com`;
  const fleet = (version: string): ResourceType => {
    return { apiVersion: `${group}/${version}`, kind: "Fleet", plural: "fleets", namespaced: true };
  };
  const operator = new TestOperator({ args: ["--kinds", folder, "--admission-port", "0"], installCrds: false });
  let manifests: Manifest[];
  let definition: Manifest;

  beforeAll(async () => {
    fs.mkdirSync(folder);
    fs.symlinkSync(path.resolve(__dirname, "../../node_modules"), path.join(directory, "node_modules"));
    fs.writeFileSync(path.join(folder, "index.js"), TWO_VERSIONS.replace("GROUP", group));
    const { configuration, kinds: own } = withLoadedKinds(
      parseConfiguration({ kinds: JSON.stringify([folder]), passphrase: "p" }, "1.2.3"),
    );
    manifests = await platformManifests(configuration, own);
    definition = manifests.find(({ metadata }) => metadata.name === `fleets.${group}`) as Manifest;
    for (const manifest of manifests) await apply(manifest);
    await operator.start({ env: { KINDSTACK_NAMESPACE: NAMESPACE } });
  });
  afterAll(async () => {
    await operator.dispose();
    await removeAdmission(client);
    for (const manifest of installed) await apply(manifest);
    await client.delete(fleet("v2"), "one", "default");
    await client.mergePatch(DEFINITION_TYPE, definition.metadata.name ?? "", undefined, {
      metadata: { labels: { [INSTALLED_IN_LABEL]: "" } },
    });
    await remove(definition);
  });

  it("has no difference for GitOps tools at rest, and is unchanged by further applies of kubectl's", async () => {
    const served = (version: string) => known(client.get(fleet(version), "one", "default"));
    const [{ apiVersion: stored }, { apiVersion: former }] = [fleet("v2"), fleet("v1")];
    await apply({
      apiVersion: stored,
      kind: "Fleet",
      metadata: { name: "one", namespace: "default" },
      spec: { image: { name: "a" } },
    });
    await eventually(async () =>
      expect(await served("v1"), operator.log.slice(-2_000)).toMatchObject({
        apiVersion: former,
        spec: { image: "a" },
      }),
    );

    for (const tool of GITOPS) await expectNoDifference(manifests, tool);
    expect(await fluxDiff(manifests)).toBe("");
    const applied = () => apply(definition, { force: "false" });
    const before = await applied();
    expect(await applied()).toEqual(before);
    expect(await served("v1")).toMatchObject({ spec: { image: "a" } });
  });
});

const TWO_VERSIONS = `
const { defineKind, servedVersion, Type } = require("kindstack");
exports.fleet = defineKind({
  group: "GROUP", version: "v2", kind: "Fleet", plural: "fleets", singular: "fleet", scope: "Namespaced", description: "",
  columns: [], owns: [], directory: __dirname, spec: Type.Object({ image: Type.Object({ name: Type.String() }) }),
  status: Type.Object({}), report: () => ({}), program: () => {},
  capabilities: {
    versions: [
      servedVersion({
        version: "v1",
        spec: Type.Object({ image: Type.String() }),
        toStored: ({ spec: { image }, annotations }) => ({ spec: { image: { name: image } }, annotations }),
        fromStored: ({ spec, annotations }) => ({ spec: { image: spec.image.name }, annotations }),
      }),
    ],
  },
});
`;

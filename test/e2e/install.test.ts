import { execFile, execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { Agent, request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import { MAX_REQUEST_BYTES } from "../../src/preview/api";
import { eventually } from "../../src/testing/eventually";
import { resolveBinary } from "../../src/toolchain/resolve";
import { ADMISSION_LABEL } from "../../stacks/contract/admission";
import type { PolicyRule } from "../../stacks/contract/capabilities";
import { INSTALLED_IN_LABEL } from "../../stacks/contract/installation";
import { type AnyKind, kindName } from "../../stacks/contract/kind";
import { MODE_ANNOTATION } from "../../stacks/contract/mode";
import { INSPECTION_SECRET } from "../../stacks/contract/rbac";
import { kinds } from "../../stacks/kinds/index";
import { withLoadedKinds } from "../../stacks/platform/kinds";
import { platformManifests } from "../../stacks/platform/manifests";
import { parseConfiguration } from "../../stacks/platform/parse-configuration";
import { removeAdmission } from "../admission/leftovers";
import { controlPlane } from "../control-plane";
import { STUDENTS, useDatabase } from "../providers/postgres/database";
import { bindingFor } from "../rights";
import { testTools } from "../tools";
import { ApiRecorder, type Right } from "./api-recorder";
import { removeUntilGone, untilCondition, untilGone, untilReady, untilSynced } from "./conditions";
import {
  memcached,
  namespace,
  namespaceOf,
  objectOf,
  podSet,
  postgresWriter,
  sampleFile,
  tenant,
  uniqueName,
} from "./manifests";
import { annotate, client, edit, find, get, pathOf, remove, tokenOf } from "./objects";
import { kindstack, MAIN, TestOperator } from "./operator";
import { OwnKinds } from "./own-kinds";
import { makeAccount, previewsAt, writeKubeconfig } from "./previewer";

const NAMESPACE = "kindstack-system";
const installed = parseAllDocuments(fs.readFileSync(path.resolve(__dirname, "../../deploy/install.yaml"), "utf8")).map(
  (document) => document.toJS() as Manifest,
);
const installedOf = (kind: string) => installed.find((manifest) => manifest.kind === kind) as Manifest;

/** Server-side apply as `kubectl apply --server-side` does it, with unknown fields refused. */
async function apply(manifest: Manifest, query: Record<string, string> = {}): Promise<LiveObject> {
  return client.json("PATCH", await pathOf(manifest), {
    query: { fieldManager: "kubectl", force: "true", fieldValidation: "Strict", ...query },
    contentType: "application/apply-patch+yaml",
    body: manifest,
  });
}

function withoutBookkeeping({ metadata, ...object }: LiveObject): object {
  const { managedFields: _, resourceVersion: __, ...rest } = metadata;
  return { ...object, metadata: rest };
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
  const capsuleNamespace = namespaceOf("oil", uniqueName("oil"));
  let recorder: ApiRecorder;
  let token: string;

  beforeAll(async () => {
    await database.query(`CREATE TABLE students (${STUDENTS})`);
    token = await tokenOf(NAMESPACE, "kindstack");
    recorder = await ApiRecorder.start(controlPlane().kubeconfig);
    const kubeconfig = path.join(operator.directory, "account", "kubeconfig");
    writeKubeconfig(kubeconfig, token, recorder.url);
    await apply(capsuleNamespace);
    const ports = ["--admission-port", "0", "--metrics-port", "0", "--preview-port", "0"];
    await operator.start({
      args: [...ports, "--admission-owner", "kindstack-admission"],
      env: { KUBECONFIG: kubeconfig, KINDSTACK_NAMESPACE: NAMESPACE },
    });
  });
  afterAll(async () => {
    await operator.dispose();
    await removeAdmission(client);
    await remove(capsuleNamespace);
    recorder?.close();
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
      await untilReady(manifest);

      await apply({ ...manifest, spec: { ...(manifest.spec as object), ...changes[kindName(kind)] } });
      await untilReady(manifest);

      await removeUntilGone(manifest);
    },
  );

  it("plans what waits for an approval, applies it then, and removes the plan", async () => {
    const { metadata, ...manifest } = memcached(uniqueName("waiting"));
    const waiting = { ...manifest, metadata: { ...metadata, annotations: { [MODE_ANNOTATION]: "Propose" } } };
    await apply(waiting);
    await untilCondition(waiting, "Synced", "False", "WaitsForApproval");
    kindstack(["approve", "memcacheds", metadata.name ?? "", "-n", "default", "--yes"]);
    await untilSynced(waiting);
    await annotate(waiting, { [MODE_ANNOTATION]: null });
    await removeUntilGone(waiting);
  });

  it("counts what happens again and again in one Event", async () => {
    const manifest = postgresWriter(uniqueName("waiting"), { table: "absent" });
    await apply(manifest);
    await untilCondition(manifest, "Ready", "False");

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
    const name = uniqueName("asked");
    const object = tenant(name, { adminEmail: "before@example.com", adminGroups: [], userGroups: [] });
    const namespaced = uniqueName("asked");
    const administrator = { kind: "ServiceAccount", name: "default", namespace: namespaced };
    const binding = bindingFor([administrator], "cluster-admin", { name: uniqueName("admin") });
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
        const options = { env: { ...env, ...environment }, cwd: operator.directory };
        const server = bearer === "" ? [] : ["--server", address, "--server-ca", ca];
        execFile(process.execPath, [MAIN, ...words, ...server], options, (error, stdout, stderr) =>
          resolve({ exitCode: error === null ? 0 : Number(error.code), stdout, stderr }),
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
      await untilReady(object);
      address = previewsAt(operator).replace("127.0.0.1", "localhost");
      const secret = await get(objectOf({ apiVersion: "v1", kind: "Secret" }, INSPECTION_SECRET, NAMESPACE));
      ca = path.join(operator.directory, "ca.crt");
      fs.writeFileSync(ca, Buffer.from((secret.data as Record<string, string>)["ca.crt"] ?? "", "base64"));

      const rules = [
        { apiGroups: ["kindstack.dev"], resources: ["previews"], verbs: ["create", "get"] },
        ...kinds.map(({ group, plural }) => ({ apiGroups: [group], resources: [plural], verbs: ["get", "list"] })),
      ];
      for (const manifest of [namespace(namespaced), binding]) await apply(manifest);
      reader = await makeAccount(namespaced, "reader", rules);
      limited = await makeAccount(namespaced, "limited", rules, [namespaced]);

      const changed = { ...object, spec: { ...(object.spec as object), adminEmail: "after@example.com" } };
      const renamed = ({ metadata, ...rest }: Manifest, name: string) => ({ ...rest, metadata: { ...metadata, name } });
      const items = [changed, ...kinds.map((kind) => renamed(sample(kind), uniqueName("new")))];
      const list = { apiVersion: "v1", kind: "List", items };
      fs.writeFileSync(path.join(operator.directory, "objects.json"), JSON.stringify(list));
      fs.writeFileSync(path.join(operator.directory, "podset.json"), JSON.stringify(podSet("pods", 2, namespaced)));
    });
    afterAll(async () => {
      for (const manifest of [object, binding, namespace(namespaced)]) await remove(manifest);
      await untilGone(object); // another operator's backend has no stack of it
    });

    it("gives the report that a preview with all credentials gives", async () => {
      const words = ["preview", "-f", "objects.json", "-o", "json"];
      const asked = await ask(words, reader);
      const own = await ask(words, "", { ...operator.backend, KUBECONFIG: controlPlane().kubeconfig });

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
      const told = ["history", "outputs", "diff"].map((command) =>
        ask([command, "tenant.multitenancy", name, "-o", "json"], reader),
      );
      const [history, outputs, diff] = (await Promise.all(told)).map(({ stdout }) => JSON.parse(stdout));

      expect(history[0]).toMatchObject({ kind: "update", result: "succeeded" });
      expect(outputs).toMatchObject([{ type: "Namespace" }]);
      expect(diff).toMatchObject({ summary: { none: 1 } });
    });

    it("shows a state to those alone who may get states.kindstack.dev", async () => {
      const words = ["state", "export", "tenant.multitenancy", name];
      const refused = { exitCode: 1, stderr: expect.stringContaining("may not get states.kindstack.dev") };
      expect(await ask(words, reader)).toMatchObject(refused);
      const state = await ask(words, await tokenOf(namespaced, "default"));
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

  it.each(GITOPS)("differs in nothing from what %s applies, by a dry run of its server-side apply", (tool) =>
    expectNoDifference(installed, tool),
  );

  it("differs in nothing for Flux, by its own code, which would see a changed field", async () => {
    const deployment = installedOf("Deployment");

    expect(await fluxDiff(installed)).toBe("");
    expect(await fluxDiff([{ ...deployment, spec: { ...(deployment.spec as object), minReadySeconds: 1 } }])).toBe(
      `Deployment/${NAMESPACE}/kindstack configured\n`,
    );
  });

  it("leaves nothing of admission behind when its role is deleted, as an uninstallation does", async () => {
    const types = [
      { apiVersion: "admissionregistration.k8s.io/v1", kind: "MutatingWebhookConfiguration" },
      { apiVersion: "admissionregistration.k8s.io/v1", kind: "ValidatingAdmissionPolicy" },
      { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole" },
    ];
    const made = async () => {
      const lists = await Promise.all(types.map((type) => client.list(type, { labelSelector: ADMISSION_LABEL })));
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
    const bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
    const asAccount = async (role: string) => {
      const response = await fetch(`${recorder.url}${bindings}?dryRun=All`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: JSON.stringify(bindingFor([], role, { name: uniqueName("binding"), namespace: "default" })),
      });
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
    const kubeconfig = path.join(operator.directory, "account", "kubeconfig");
    writeKubeconfig(kubeconfig, await tokenOf(NAMESPACE, "kindstack"), recorder.url);
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
    const manifest = podSet(uniqueName("chosen"), 1);
    await apply(manifest);
    await untilReady(manifest);
    await removeUntilGone(manifest);

    expect([...recorder.forbidden]).toEqual([]);
    const types = [...recorder.used].join(" ");
    expect(types).toContain("podsets");
    expect(types).not.toMatch(/tenants|postgreswriters|memcacheds|deployments|admissionregistration/);
  });
});

describe("an operator of a kind that serves several versions", () => {
  const own = new OwnKinds("Fleet");
  const folder = path.dirname(own.write("fleet/index.js", twoVersions(own)));
  const fleet = (version: string) =>
    objectOf({ apiVersion: `${own.group}/${version}`, kind: "Fleet" }, "one", "default");
  const operator = new TestOperator({ args: ["--kinds", folder, "--admission-port", "0"], installCrds: false });
  let manifests: Manifest[];
  let definition: Manifest;

  beforeAll(async () => {
    const values = { kinds: JSON.stringify([folder]), passphrase: "p" };
    const loaded = withLoadedKinds(parseConfiguration(values, "1.2.3"));
    manifests = await platformManifests(loaded.configuration, loaded.kinds);
    definition = manifests.find(({ metadata }) => metadata.name === `fleets.${own.group}`) as Manifest;
    for (const manifest of manifests) await apply(manifest);
    await operator.start({ env: { KINDSTACK_NAMESPACE: NAMESPACE } });
  });
  afterAll(async () => {
    await operator.dispose();
    await removeAdmission(client);
    for (const manifest of installed) await apply(manifest);
    await remove(fleet("v2"));
    await edit(definition, { metadata: { labels: { [INSTALLED_IN_LABEL]: "" } } });
    await remove(definition);
  });

  it("has no difference for GitOps tools at rest, and is unchanged by further applies of kubectl's", async () => {
    const former = { ...fleet("v1"), spec: { image: "a" } };
    await apply({ ...fleet("v2"), spec: { image: { name: "a" } } });
    await eventually(async () => expect(await find(former), operator.log.slice(-2_000)).toMatchObject(former));

    for (const tool of GITOPS) await expectNoDifference(manifests, tool);
    expect(await fluxDiff(manifests)).toBe("");
    const applied = () => apply(definition, { force: "false" });
    const before = await applied();
    expect(await applied()).toEqual(before);
    expect(await get(former)).toMatchObject(former);
  });
});

function twoVersions(own: OwnKinds): string {
  return `
const { defineKind, servedVersion, Type } = require("kindstack");
exports.fleet = ${own.definition(
    "Fleet",
    `version: "v2", owns: [], spec: Type.Object({ image: Type.Object({ name: Type.String() }) }), program: () => {},
  capabilities: {
    versions: [
      servedVersion({
        version: "v1",
        spec: Type.Object({ image: Type.String() }),
        toStored: ({ spec: { image }, annotations }) => ({ spec: { image: { name: image } }, annotations }),
        fromStored: ({ spec, annotations }) => ({ spec: { image: spec.image.name }, annotations }),
      }),
    ],
  },`,
  )};
`;
}

import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import path from "node:path";
import type { KubeConfig } from "@kubernetes/client-node";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { userConfig } from "../../bench/users";
import { isApiError, KubernetesClient, known, type LiveObject } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { DEFAULT_USER_GROUP, NAMESPACE_DELETER, TENANT_LABEL } from "../../stacks/kinds/capsule-tenant/labels";
import { controlPlane } from "../control-plane";
import { useDirectory } from "../directories";
import { noKubectl } from "../e2e/kubectl";
import { tokenOf } from "../e2e/objects";
import { NAMESPACE } from "../providers/kubernetes/test-cluster";
import { bindingFor } from "../rights";
import { create, namespaceOf, TestAdmission, uniqueName } from "./test-admission";

/*
 * The tools of a tenant's owner, for each sort of owner: kubectl itself; and what Flux's kustomize-controller and Argo CD's
 * controller send for a namespace, request by request, as the programs themselves are not here.
 */

const admission = new TestAdmission(controlPlane());
const home = uniqueName("robots");
const team = uniqueName("team");
const robot = `system:serviceaccount:${home}:deployer`;
const directory = useDirectory();

interface Owner {
  tenant: string;
  spec: { kind: "User" | "Group" | "ServiceAccount"; name: string };
  config(): Promise<KubeConfig>;
}

const certified = (name: string, group?: string) => userConfig(path.dirname(controlPlane().kubeconfig), name, group);
const alice = uniqueName("alice");
const OWNERS: Record<Owner["spec"]["kind"], Owner> = {
  User: {
    tenant: uniqueName("oil"),
    spec: { kind: "User", name: alice },
    config: () => certified(alice, DEFAULT_USER_GROUP),
  },
  Group: {
    tenant: uniqueName("gas"),
    spec: { kind: "Group", name: team },
    config: () => certified(uniqueName("member"), team),
  },
  ServiceAccount: {
    tenant: uniqueName("wind"),
    spec: { kind: "ServiceAccount", name: robot },
    async config() {
      const config = await certified("anyone");
      const token = await tokenOf(home, "deployer");
      config.users = config.users.map(({ name }) => ({ name, token }));
      return config;
    },
  },
};

beforeAll(async () => {
  vi.stubEnv("KINDSTACK_CAPSULE_USER_GROUPS", [DEFAULT_USER_GROUP, team, `system:serviceaccounts:${home}`].join(","));
  await admission.open();
  await admission.create(namespaceOf(home));
  await admission.create({ apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "deployer", namespace: home } });
  for (const { tenant, spec } of Object.values(OWNERS)) await admission.tenant(tenant, { owner: spec });
  await admission.serve();
});
afterAll(async () => {
  await admission.close();
  vi.unstubAllEnvs();
});

/** What a tenant's stack gives its owner in a namespace. */
async function giveRights(namespace: string, { spec }: Owner): Promise<void> {
  const account = { kind: "ServiceAccount", name: "deployer", namespace: home };
  const subject = spec.kind === "ServiceAccount" ? account : { apiGroup: "rbac.authorization.k8s.io", ...spec };
  for (const role of ["admin", NAMESPACE_DELETER]) {
    await admission.create(bindingFor([subject], role, { name: uniqueName(role), namespace }));
  }
}

describe.each(Object.values(OWNERS))("an owner that is a $spec.kind", (owner) => {
  let config: KubeConfig;
  let client: KubernetesClient;
  beforeAll(async () => {
    config = await owner.config();
    client = new KubernetesClient(config);
    writeFileSync(path.join(directory, owner.spec.kind), config.exportConfig());
    await eventually(() => create(client, namespaceOf(uniqueName("dry")), true));
  });
  afterAll(() => client.close());

  describe.skipIf(noKubectl !== undefined)(`with kubectl${noKubectl ? ` (${noKubectl})` : ""}`, () => {
    const name = uniqueName("kubectl");
    const kubeconfig = path.join(directory, owner.spec.kind);

    /** Runs it with a manifest as its input, and says what it said. */
    const run = (command: string, manifest?: object): Promise<{ code: number; said: string }> =>
      new Promise((resolve) => {
        const args = ["--kubeconfig", kubeconfig, ...command.split(" ")];
        const child = execFile("kubectl", args, (error, stdout, stderr) =>
          resolve({ code: Number(error?.code ?? 0), said: stdout + stderr }),
        );
        child.stdin?.end(manifest === undefined ? "" : JSON.stringify(manifest));
      });
    const apply = (labels: Record<string, string>, options = "") =>
      run(`apply${options} -f -`, namespaceOf(name, { labels }));
    const diff = (labels: Record<string, string>) => run("diff -f -", namespaceOf(name, { labels }));

    it("applies a namespace that is not there yet, with a dry run and a diff before", async () => {
      const created = expect.stringContaining("created (server dry run)");
      expect(await apply({ stage: "dev" }, " --dry-run=server")).toEqual({ code: 0, said: created });
      const added = expect.stringContaining(`+    ${TENANT_LABEL}: ${owner.tenant}`);
      expect(await diff({ stage: "dev" })).toEqual({ code: 1, said: added });
      expect((await apply({ stage: "dev" })).said).toBe(`namespace/${name} created\n`);
    });

    it("applies it again: unchanged, changed, and with server-side apply", async () => {
      await giveRights(name, owner);
      await eventually(async () => expect((await apply({ stage: "dev" })).said).toBe(`namespace/${name} unchanged\n`));
      const changed = expect.stringMatching(/-\s+stage: dev\n\+\s+stage: prod/);
      expect(await diff({ stage: "prod" })).toEqual({ code: 1, said: changed });
      expect((await apply({ stage: "prod" })).said).toBe(`namespace/${name} configured\n`);
      const onServer = await apply({ stage: "prod" }, " --server-side --force-conflicts");
      expect(onServer.said).toContain("serverside-applied");
      expect(await labelsOf(name)).toMatchObject({ stage: "prod", [TENANT_LABEL]: owner.tenant });
    });

    it("labels, annotates and patches it, as far as it may at creation", async () => {
      for (const [command, said] of [
        [`label ns ${name} team=blue`, "labeled"],
        [`label ns ${name} team-`, "unlabeled"],
        [`annotate ns ${name} note=x`, "annotated"],
        [`annotate ns ${name} note=y --overwrite`, "annotated"],
        [`patch ns ${name} -p {"metadata":{"labels":{"a":"b"}}}`, "patched"],
        [`patch ns ${name} --type=merge -p {"metadata":{"labels":{"a":null}}}`, "patched"],
        [`patch ns ${name} --type=json -p [{"op":"add","path":"/metadata/labels/c","value":"d"}]`, "patched"],
      ] as const) {
        expect(await run(command), command).toEqual({ code: 0, said: expect.stringContaining(said) });
      }
      const node = '{"apiVersion":"v1","kind":"Node","name":"n","uid":"u"}';
      for (const command of [
        `label ns ${name} pod-security.kubernetes.io/enforce=privileged`,
        `label ns ${name} ${TENANT_LABEL}-`,
        `label ns ${name} ${TENANT_LABEL}=other --overwrite`,
        `annotate ns ${name} scheduler.alpha.kubernetes.io/node-selector=a=b`,
        `patch ns ${name} -p {"metadata":{"finalizers":["example.com/held"]}}`,
        `patch ns ${name} -p {"metadata":{"ownerReferences":[${node}]}}`,
        "label ns default mine=yes",
        `label ns ${home} mine=yes`,
      ]) {
        expect(await run(command), command).toEqual({ code: 1, said: expect.stringContaining("denied") });
      }
    });

    it("deletes it", async () => {
      expect((await run(`delete ns ${name} --wait=false`)).said).toContain("deleted");
    });
  });

  const at = (name: string) => `/api/v1/namespaces/${name}`;
  const labelsOf = async (name: string) => (await known(admission.client.get(NAMESPACE, name)))?.metadata.labels;

  it("with Flux: a look, a dry run and a server-side apply by its field manager, and pruning", async () => {
    const name = uniqueName("flux");
    const toolkit = "kustomize.toolkit.fluxcd.io";
    const labels = { [`${toolkit}/name`]: "apps", [`${toolkit}/namespace`]: home };
    const apply = async (more: Record<string, string>, dryRun: boolean) =>
      client.json<LiveObject>("PATCH", at(name), {
        query: { fieldManager: "kustomize-controller", force: "true", dryRun: dryRun ? "All" : undefined },
        body: namespaceOf(name, { labels: { ...labels, ...more } }),
        contentType: "application/apply-patch+yaml",
      });
    const look = () => client.json<LiveObject>("GET", at(name)).catch((error) => error);
    const reconcile = async (more: Record<string, string>) => {
      await look();
      await apply(more, true);
      await apply(more, false);
    };

    expect(isApiError(await look(), 404)).toBe(true);
    await reconcile({ stage: "dev" });
    await expect(reconcile({ stage: "prod" })).rejects.toThrow("you have no rights in it yet");
    await giveRights(name, owner);
    await eventually(() => reconcile({ stage: "prod" }));
    // What it removes from the manifest goes; the tenant's label, which it never had, stays.
    await reconcile({});
    expect(await labelsOf(name)).toMatchObject({ ...labels, [TENANT_LABEL]: owner.tenant });
    expect(await labelsOf(name)).not.toHaveProperty("stage");
    // What it finds when it waits: that the namespace is there.
    expect(await look()).toMatchObject({ status: { phase: "Active" } });

    await client.json("DELETE", at(name), {
      body: { apiVersion: "v1", kind: "DeleteOptions", propagationPolicy: "Background" },
    });
  });

  it("with Argo CD: a creation, client-side and server-side diffs, a strategic patch, and its tracking", async () => {
    const name = uniqueName("argo");
    const metadata = (labels: Record<string, string>) => ({
      labels: { "app.kubernetes.io/instance": "apps", ...labels },
      annotations: { "argocd.argoproj.io/tracking-id": `apps:/Namespace:/${name}` },
    });
    const lastApplied = (labels: Record<string, string>) => ({
      ...metadata(labels),
      annotations: {
        ...metadata(labels).annotations,
        "kubectl.kubernetes.io/last-applied-configuration": `${JSON.stringify(namespaceOf(name, metadata(labels)))}\n`,
      },
    });
    const query = { fieldManager: "argocd-controller" };
    const look = () => client.json<LiveObject>("GET", at(name)).catch((error) => error);

    expect(isApiError(await look(), 404)).toBe(true);
    await client.json("POST", "/api/v1/namespaces", { query, body: namespaceOf(name, lastApplied({ stage: "dev" })) });
    await giveRights(name, owner);
    await eventually(async () => {
      expect(await look()).toMatchObject({ metadata: metadata({ stage: "dev" }) });
      await client.json("PATCH", at(name), {
        query,
        body: { metadata: lastApplied({ stage: "prod" }) },
        contentType: "application/strategic-merge-patch+json",
      });
    });
    const predicted = await client.json<LiveObject>("PATCH", at(name), {
      query: { ...query, force: "true", dryRun: "All" },
      body: namespaceOf(name, metadata({ stage: "next" })),
      contentType: "application/apply-patch+yaml",
    });
    expect(predicted.metadata.labels).toMatchObject({ stage: "next", [TENANT_LABEL]: owner.tenant });
    expect(await labelsOf(name)).toMatchObject({ stage: "prod", "app.kubernetes.io/instance": "apps" });

    await client.json("DELETE", at(name), {
      body: { apiVersion: "v1", kind: "DeleteOptions", propagationPolicy: "Foreground" },
    });
  });
});

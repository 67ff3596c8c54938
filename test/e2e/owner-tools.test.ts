import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { KubeConfig } from "@kubernetes/client-node";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { userConfig } from "../../bench/users";
import { KubernetesClient, type LiveObject } from "../../providers/kubernetes/client";
import { layoutOf } from "../../src/dev/layout";
import { type ApiProxy, startProxy } from "../../src/proxy/proxy";
import { eventually } from "../../src/testing/eventually";
import { readServingCertificate } from "../../src/tls/served-certificate";
import { resolveBinary } from "../../src/toolchain/resolve";
import { capsuleTenant as kind } from "../../stacks/kinds/capsule-tenant/kind";
import { capsuleNamespaceView } from "../../stacks/kinds/capsule-tenant/namespace-view";
import { removeAdmission } from "../admission/leftovers";
import { controlPlane } from "../control-plane";
import { useDirectory } from "../directories";
import { testTools } from "../tools";
import { applyUntilReady } from "./conditions";
import { noKubectl } from "./kubectl";
import { capsuleTenant, namespace, uniqueName } from "./manifests";
import { client, create, find, remove } from "./objects";
import { useOperator } from "./operator";

/* What tools of owners do in a namespace that is not there yet, or was made a moment ago. */

afterAll(() => removeAdmission(client)); // once the operator has ended
useOperator({ args: ["--admission-port", "0"] });

const GROUP = "capsule.clastix.io";
const owner = uniqueName("owner");
const foreign = uniqueName("foreign");
const folder = useDirectory();
let proxy: ApiProxy;
let helm: string;
/** Kubeconfigs, of the owner through the proxy and at the API server. */
const kubeconfigs = { proxy: "", direct: "" };

beforeAll(async () => {
  const { kubeconfig } = controlPlane();
  const { pki } = layoutOf(path.dirname(kubeconfig));
  const config = new KubeConfig();
  config.loadFromFile(kubeconfig);
  proxy = await startProxy({
    config,
    kind,
    view: capsuleNamespaceView,
    port: 0,
    host: "127.0.0.1",
    servingCertificate: () => readServingCertificate(path.join(pki, "serving.crt"), path.join(pki, "serving.key")),
    userGroups: [GROUP],
    refusedGroups: ["system:masters"],
    maxConnections: 100,
    logger: pino({ level: "silent" }),
  });
  await eventually(() => expect(proxy.notReady).toBeUndefined());
  helm = await resolveBinary(testTools.helm);
  const user = await userConfig(path.dirname(kubeconfig), owner, GROUP);
  const exported = JSON.parse(user.exportConfig()) as { clusters: { cluster: { server: string } }[] };
  for (const way of ["direct", "proxy"] as const) {
    kubeconfigs[way] = path.join(folder, `${way}.kubeconfig`);
    if (way === "proxy")
      for (const { cluster } of exported.clusters) cluster.server = `https://127.0.0.1:${proxy.port}`;
    await writeFile(kubeconfigs[way], JSON.stringify(exported));
  }
  await applyUntilReady(capsuleTenant(owner, { owner: { kind: "User", name: owner }, namespaceQuota: 20 }));
  await create(namespace(foreign));
  return async () => {
    await proxy.stop(0);
    await remove(namespace(foreign));
    await remove(capsuleTenant(owner, {}));
  };
});

interface Ran {
  exitCode: number;
  output: string;
}

function run(way: keyof typeof kubeconfigs, command: string, ...args: string[]): Promise<Ran> {
  const env = { ...process.env, KUBECONFIG: kubeconfigs[way], HELM_CACHE_HOME: folder, HELM_CONFIG_HOME: folder };
  return new Promise((resolve) => {
    execFile(command, args, { env }, (error, stdout, stderr) =>
      resolve({ exitCode: error === null ? 0 : 1, output: stdout + stderr }),
    );
  });
}

async function chart(): Promise<string> {
  const directory = path.join(folder, "chart");
  await mkdir(path.join(directory, "templates"), { recursive: true });
  await writeFile(path.join(directory, "Chart.yaml"), "apiVersion: v2\nname: x\nversion: 0.1.0\n");
  await writeFile(
    path.join(directory, "templates", "map.yaml"),
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fromhelm}\ndata: {a: {{ .Values.a | default 1 | quote }}}\n",
  );
  return directory;
}

const contentOf = (name: string) =>
  [
    { apiVersion: "v1", kind: "Namespace", metadata: { name } },
    { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "content", namespace: name }, data: { a: "b" } },
  ]
    .map((manifest) => `---\n${JSON.stringify(manifest)}\n`)
    .join("");
const deployment = (namespace: string) => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web", namespace },
  spec: {
    selector: { matchLabels: { app: "web" } },
    template: { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "web", image: "web" }] } },
  },
});
const configMap = (name: string, namespace: string) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, namespace },
});

describe.skipIf(noKubectl)(`through the proxy, an owner (${noKubectl ?? "kubectl is there"})`, () => {
  it("installs a chart with helm into a namespace that helm makes, and upgrades it", async () => {
    const name = uniqueName("helm");
    const installed = await run("proxy", helm, "install", "x", await chart(), "-n", name, "--create-namespace");
    expect(installed.output).toContain("STATUS: deployed");
    expect(await find(configMap("fromhelm", name))).toMatchObject({ data: { a: "1" } });
    expect(await run("proxy", helm, "upgrade", "x", await chart(), "-n", name, "--set", "a=2")).toMatchObject({
      exitCode: 0,
    });
    expect(await find(configMap("fromhelm", name))).toMatchObject({ data: { a: "2" } });
  });

  it("upgrades with helm a release that is not there, into a namespace that is not there either", async () => {
    const name = uniqueName("upgrade");
    const words = ["upgrade", "--install", "x", await chart(), "-n", name, "--create-namespace"];
    for (const revision of [1, 2]) {
      const { output } = await run("proxy", helm, ...words);
      expect(output).toContain(`REVISION: ${revision}`);
    }
    expect((await run("proxy", helm, "list", "-n", uniqueName("absent"), "-q")).output).toBe("");
  });

  it.each([[[]], [["--server-side"]]])("applies a namespace with its content in one file, %j", async (options) => {
    const name = uniqueName("apply");
    const file = path.join(folder, `${name}.yaml`);
    await writeFile(file, contentOf(name));
    for (const _ of ["first", "again"]) {
      const applied = await run("proxy", "kubectl", "apply", ...options, "-f", file);
      expect(applied, applied.output).toMatchObject({ exitCode: 0 });
    }
    expect(await find(configMap("content", name))).toBeDefined();
  });

  it("writes right after the creation of a namespace, each time", async () => {
    for (let round = 0; round < 4; round++) {
      const name = uniqueName("loop");
      const made = await run("proxy", "kubectl", "create", "namespace", name);
      expect(made, made.output).toMatchObject({ exitCode: 0 });
      const written = await run("proxy", "kubectl", "create", "configmap", "a", "-n", name, "--from-literal=a=b");
      expect(written, written.output).toMatchObject({ exitCode: 0 });
    }
  });

  it("is told that nothing is there in a namespace that may be created, and nothing of what belongs to others", async () => {
    const absent = uniqueName("absent");
    for (const verb of ["get", "delete"]) {
      const answer = await run("proxy", "kubectl", verb, "configmap", "a", "-n", absent);
      expect(answer.output).toContain(`(NotFound): namespaces "${absent}" not found`);
    }
    expect((await run("proxy", "kubectl", "get", "configmap", "a", "-n", foreign)).output).toContain("(Forbidden)");
  });

  it("is still refused at once what the rights in a new namespace do not cover", async () => {
    const name = uniqueName("refused");
    await run("proxy", "kubectl", "create", "namespace", name);
    await run("proxy", "kubectl", "create", "configmap", "a", "-n", name);
    const refused = await run("proxy", "kubectl", "delete", "limitrange", "capsule-0", "-n", name);
    expect(refused.output).toContain("(Forbidden)");
  });
});

/* Terraform and Argo CD cannot be had here. These are the requests that their own code makes. */
describe("through the proxy, the requests of", () => {
  const APPLY = { contentType: "application/apply-patch+yaml" };
  let asOwner: KubernetesClient;

  beforeAll(() => {
    const config = new KubeConfig();
    config.loadFromFile(kubeconfigs.proxy);
    asOwner = new KubernetesClient(config);
    return () => asOwner.close();
  });

  const get = (target: string) => asOwner.json<LiveObject>("GET", target);
  const untilAbsent = (target: string) => eventually(() => expect(get(target)).rejects.toThrow(/not found/));
  const pathsIn = (name: string) => ({
    namespace: `/api/v1/namespaces/${name}`,
    maps: `/api/v1/namespaces/${name}/configmaps`,
    map: `/api/v1/namespaces/${name}/configmaps/content`,
    deployments: `/apis/apps/v1/namespaces/${name}/deployments`,
  });
  const manifestsIn = (name: string) => ({
    namespace: { apiVersion: "v1", kind: "Namespace", metadata: { name } },
    map: { ...configMap("content", name), data: { a: "b" } },
    deployment: deployment(name),
  });

  it("Terraform: plan, apply, refresh, change and destroy of a namespace with its content", async () => {
    const name = uniqueName("terraform");
    const paths = pathsIn(name);
    const manifests = manifestsIn(name);
    // A state that knows objects which are gone is refreshed: only a 404 is taken for gone.
    for (const absent of [paths.namespace, paths.map, `${paths.deployments}/web`]) await untilAbsent(absent);

    await asOwner.json("POST", "/api/v1/namespaces", { body: manifests.namespace });
    await get(paths.namespace);
    await Promise.all([
      asOwner.json("POST", paths.maps, { body: manifests.map }),
      asOwner.json("POST", paths.deployments, { body: manifests.deployment }),
    ]);
    for (const made of [paths.namespace, paths.map, `${paths.deployments}/web`]) await get(made);
    const change = [{ op: "replace", path: "/data", value: { a: "c" } }];
    await asOwner.json("PATCH", paths.map, { body: change, contentType: "application/json-patch+json" });
    expect(await get(paths.map)).toMatchObject({ data: { a: "c" } });

    for (const made of [paths.map, `${paths.deployments}/web`]) {
      await asOwner.json("DELETE", made);
      await untilAbsent(made);
    }
    await asOwner.json("DELETE", paths.namespace);
    await untilAbsent(paths.namespace);
  });

  it("Argo CD: a cache of the cluster, and a namespace with its content that is applied, seen and pruned", async () => {
    const name = uniqueName("argocd");
    const paths = pathsIn(name);
    const manifests = manifestsIn(name);
    const cached = async (target: string) =>
      (await asOwner.json<{ items: LiveObject[] }>("GET", `${target}?limit=500`)).items;
    const sync = (target: string, body: object, dryRun?: "All") =>
      asOwner.json("PATCH", target, {
        body,
        ...APPLY,
        query: { fieldManager: "argocd-controller", force: "true", ...(dryRun && { dryRun }) },
      });
    for (const known of ["/version", "/api", "/apis", "/openapi/v2"]) await get(known);
    // Of all namespaces, an owner has only the namespaces: respectRBAC leaves out the rest.
    await expect(cached("/api/v1/configmaps")).rejects.toThrow(/forbidden/);
    const review = { spec: { resourceAttributes: { verb: "list", version: "v1", resource: "configmaps" } } };
    const body = { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview", ...review };
    expect(
      await asOwner.json("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", { body }),
    ).toMatchObject({
      status: { allowed: false },
    });
    // Of a namespace that is named, and is not there yet.
    for (const target of [paths.maps, paths.deployments]) expect(await cached(target)).toEqual([]);

    await untilAbsent(paths.namespace);
    for (const dryRun of ["All", undefined] as const) await sync(paths.namespace, manifests.namespace, dryRun);
    for (const dryRun of ["All", undefined] as const) {
      await sync(paths.map, manifests.map, dryRun);
      await sync(`${paths.deployments}/web`, manifests.deployment, dryRun);
    }
    const named = (objects: LiveObject[]) => objects.map(({ metadata }) => metadata.name);
    const namespaces = named(await cached("/api/v1/namespaces"));
    expect(namespaces).toContain(name);
    expect(namespaces).not.toContain(foreign);
    expect(named(await cached(paths.maps))).toContain("content");
    expect(named(await cached(paths.deployments))).toEqual(["web"]);
    const again = { ...manifests.map, metadata: { ...manifests.map.metadata, labels: { a: "b" } } };
    await sync(paths.map, again);
    expect((await get(paths.map)).metadata.labels).toEqual({ a: "b" });

    await asOwner.json("DELETE", paths.map);
    await untilAbsent(paths.map);
    await asOwner.json("DELETE", paths.namespace);
    await untilAbsent(paths.namespace);
  });
});

it.skipIf(noKubectl)("without the proxy, the line of the page waits for the rights", async () => {
  const name = uniqueName("direct");
  await run("direct", "kubectl", "create", "namespace", name);
  const line = `until kubectl auth can-i create secrets -n ${name} -q; do sleep 1; done; kubectl create secret generic s -n ${name}`;
  const waited = await run("direct", "sh", "-c", line);
  expect(waited, waited.output).toMatchObject({ exitCode: 0 });
});

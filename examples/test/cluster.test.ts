import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import type { LiveObject, Manifest } from "kindstack/providers/kubernetes";
import { eventually, startTestCluster, type TestCluster } from "kindstack/testing";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

/* The three kinds in an operator: what each makes, a preview, an object of an older version, and its deletion. */

const GROUP = "examples.kindstack.dev";
const keyring = fs.mkdtempSync(path.join(os.tmpdir(), "keyring-"));
let cluster: TestCluster;
beforeAll(async () => {
  process.env.KEYRING_FOLDER = keyring; // the plugin itself is in the package's folder of plugins
  cluster = await startTestCluster({ kinds: ["./src"] });
}, 180_000);
afterAll(async () => {
  await cluster.close();
  fs.rmSync(keyring, { recursive: true });
});

const objectOf = (kind: string, name: string, spec: object, version = "v1"): Manifest => ({
  apiVersion: `${GROUP}/${version}`,
  kind,
  metadata: { name },
  spec,
});
const found = async (apiVersion: string, kind: string, name: string) => {
  const live = await cluster.find({ apiVersion, kind, metadata: { name } });
  if (live === undefined) throw new Error(`there is no ${kind} ${name}`);
  return live as LiveObject & { data: Record<string, string>; spec: Record<string, unknown>; status: object };
};
const secretOf = async (name: string) => {
  const { data } = await found("v1", "Secret", name);
  return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, "base64").toString()]));
};
/** What an update to a manifest would do, in the words of the command line. */
function preview(manifest: Manifest): string {
  const file = path.join(keyring, "preview.yaml");
  fs.writeFileSync(file, JSON.stringify({ ...manifest, metadata: { ...manifest.metadata, namespace: "default" } }));
  const words = ["kindstack", "preview", "--kinds", "./src", "-f", file];
  return execFileSync("npx", words, { env: { ...process.env, ...cluster.env }, encoding: "utf8" });
}
/** All that is written in the folder of the cluster, such as the state and the operator's log. */
function written(): string {
  const folder = path.dirname(cluster.kubeconfig);
  const state = new URL(cluster.env.PULUMI_BACKEND_URL ?? "").pathname;
  return [folder, state]
    .flatMap((root) => fs.readdirSync(root, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && !/etcd|postgres/.test(entry.parentPath))
    .map((entry) => fs.readFileSync(path.join(entry.parentPath, entry.name), "latin1"))
    .join("\n");
}

describe("AppDatabase", () => {
  const database = (rotation: number) => objectOf("AppDatabase", "shop", { database: "shop", rotation });
  const logIn = async ({ database = "", user = "", password = "" }: Record<string, string>) => {
    const { PSQL_HOST: host = "", PSQL_PORT: port } = cluster.env;
    const client = new Client({ host, port: Number(port), database, user, password });
    try {
      await client.connect();
      return (await client.query("SELECT current_user AS role")).rows[0].role as string;
    } finally {
      await client.end();
    }
  };

  it("gives a database whose password is in the Secret and nowhere else, and rotates it", {
    timeout: 120_000,
  }, async () => {
    await cluster.apply(database(1));
    const ready = await cluster.untilReady(database(1));
    expect(ready.status).toMatchObject({ secret: "shop-database" });
    const first = await secretOf("shop-database");
    expect(await logIn(first)).toBe("shop");

    const planned = preview(database(2));
    expect(planned).toMatch(/update .*shop\/database/);
    await cluster.apply(database(2));
    await cluster.untilReady(database(2));
    const second = await secretOf("shop-database");
    expect(second.password).not.toBe(first.password);
    expect(await logIn(second)).toBe("shop");
    await expect(logIn(first)).rejects.toThrow("password");

    const state = written();
    expect(state).toContain("shop-database");
    const places = [state, await cluster.log(), JSON.stringify(await cluster.find(database(2))), planned];
    for (const password of [first.password ?? "", second.password ?? ""]) {
      const forms = [password, Buffer.from(password).toString("base64")];
      expect(places.flatMap((place, index) => (forms.some((form) => place.includes(form)) ? [index] : []))).toEqual([]);
    }
  });

  it("takes objects of v1alpha1, and drops a database with its object", { timeout: 120_000 }, async () => {
    const old = objectOf("AppDatabase", "old", { name: "old" }, "v1alpha1");
    await cluster.apply(old);
    await cluster.untilReady(old);
    expect((await found(`${GROUP}/v1`, "AppDatabase", "old")).spec).toEqual({ database: "old", rotation: 1 });
    const login = await secretOf("old-database");
    await cluster.remove(old);
    await cluster.untilGone(old);
    await cluster.untilGone({ apiVersion: "v1", kind: "Secret", metadata: { name: "old-database" } });
    await expect(logIn(login)).rejects.toThrow(/password|does not exist/);
  });
});

describe("WebService", () => {
  const container = { image: "registry.example.com/shop:1", port: 8080 };
  const service = (spec: object) => objectOf("WebService", "web", { container, ...spec });
  const replicas = async () => (await found("apps/v1", "Deployment", "web")).spec.replicas;
  const kubectl = (...words: string[]) =>
    execFileSync("kubectl", words, { env: { ...process.env, KUBECONFIG: cluster.kubeconfig }, encoding: "utf8" });

  it("is scaled by kubectl, and by an autoscaler between its bounds", { timeout: 180_000 }, async () => {
    await cluster.apply(service({ host: "shop.example.com" }));
    await cluster.untilReady(service({}));
    expect((await found("networking.k8s.io/v1", "Ingress", "web")).spec).toMatchObject({
      rules: [{ host: "shop.example.com" }],
    });
    kubectl("scale", "webservice/web", "--replicas=5");
    await eventually(async () => expect(await replicas()).toBe(5));
    await cluster.untilReady(service({}));

    const bounded = service({ host: "shop.example.com", autoscaling: { minReplicas: 2, maxReplicas: 3 } });
    expect(preview(bounded)).toMatch(/create HorizontalPodAutoscaler/);
    await cluster.apply(bounded);
    await eventually(async () => expect(await replicas()).toBe(3), 90_000); // its maximum
    kubectl("scale", "webservice/web", "--replicas=1");
    await eventually(async () => expect(await replicas()).toBe(2), 90_000); // its minimum
    const { status } = await cluster.untilReady(bounded);
    expect(status).toMatchObject({ selector: "app.kubernetes.io/name=web" });
  });

  it("takes objects of v1alpha1, and takes all that it made away with its object", { timeout: 120_000 }, async () => {
    const old = objectOf("WebService", "older", { image: container.image, instances: 1 }, "v1alpha1");
    await cluster.apply(old);
    await cluster.untilReady(old);
    expect((await found(`${GROUP}/v1`, "WebService", "older")).spec).toEqual({ container, replicas: 1 });
    await cluster.remove(old);
    await cluster.untilGone(old);
    for (const [apiVersion, kind] of [
      ["apps/v1", "Deployment"],
      ["v1", "Service"],
      ["policy/v1", "PodDisruptionBudget"],
    ] as const) {
      await cluster.untilGone({ apiVersion, kind, metadata: { name: "older" } });
    }
  });
});

describe("ApiKey", () => {
  const key = (label: string) => objectOf("ApiKey", "billing", { label });
  const issued = (id: string) => JSON.parse(fs.readFileSync(path.join(keyring, `${id}.json`), "utf8"));

  it("gives a key of the plugin, and changes its label", { timeout: 120_000 }, async () => {
    await cluster.apply(key("billing"));
    const { id } = (await cluster.untilReady(key("billing"))).status as { id: string };
    const secret = await secretOf("billing-key");
    expect(issued(id)).toEqual({ label: "billing", length: 32, value: secret.key });

    expect(preview(key("invoices"))).toMatch(/update .*billing\/key/);
    await cluster.apply(key("invoices"));
    await cluster.untilReady(key("invoices"));
    expect(issued(id)).toMatchObject({ label: "invoices", value: secret.key });
    expect(written()).not.toContain(secret.key);
  });

  it("takes objects of v1alpha1, and gives the key back with its object", { timeout: 120_000 }, async () => {
    const old = objectOf("ApiKey", "old", { title: "old" }, "v1alpha1");
    await cluster.apply(old);
    await cluster.untilReady(old);
    const { spec, status } = await found(`${GROUP}/v1`, "ApiKey", "old");
    expect(spec).toEqual({ label: "old", length: 16 });
    await cluster.remove(old);
    await cluster.untilGone(old);
    expect(fs.existsSync(path.join(keyring, `${(status as { id: string }).id}.json`))).toBe(false);
  });
});

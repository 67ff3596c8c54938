import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import type http from "node:http";
import path from "node:path";
import { pino } from "pino";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { known, type Manifest } from "../../providers/kubernetes/client";
import { installKinds } from "../../src/operator/install";
import { type ApiProxy, startProxy } from "../../src/proxy/proxy";
import { eventually } from "../../src/testing/eventually";
import type { CertifiedKey } from "../../src/tls/certificate";
import { readServingCertificate } from "../../src/tls/served-certificate";
import { customResourceDefinition } from "../../stacks/contract/crd";
import { capsuleTenant } from "../../stacks/kinds/capsule-tenant/kind";
import { capsuleNamespaceView } from "../../stacks/kinds/capsule-tenant/namespace-view";
import { proxyAccess } from "../../stacks/platform/proxy";
import { controlPlane } from "../control-plane";
import { useDirectory } from "../directories";
import { noKubectl } from "../e2e/kubectl";
import { apply, remove, tokenOf } from "../e2e/objects";
import { TestCluster } from "../providers/kubernetes/test-cluster";
import { bindingFor, userNamed } from "../rights";
import { TestAuthority } from "../tls/test-authority";
import { ask, begin, type Question } from "./fixture";

/*
 * The proxy with the rights that its ClusterRole gives it and no other, before the real API server. No operator runs:
 * what it would do to a tenant's namespaces is done here by hand.
 */

const GROUP = "capsule.clastix.io";
const OWN = ["proxy-oil-dev", "proxy-oil-prod"];
const FOREIGN = "proxy-gas";
const NAMESPACES = "/api/v1/namespaces";

const cluster = TestCluster.use();
let proxy: ApiProxy;
let ca: string;
let apiServerPort: number;
type User = "alice" | "bob" | "carol" | "robot";
let users: Record<User, CertifiedKey | string>;
const directory = useDirectory();

function tenant(name: string, owner: { kind: string; name: string }): Manifest {
  return { apiVersion: `${GROUP}/v1alpha1`, kind: "Tenant", metadata: { name }, spec: { owner } };
}

function namespace(name: string, tenant?: string): Manifest {
  const labels = { proxy: "test", ...(tenant !== undefined && { [`${GROUP}/tenant`]: tenant }) };
  return { apiVersion: "v1", kind: "Namespace", metadata: { name, labels } };
}

function admin(namespace: string, user: string): Manifest {
  return bindingFor([userNamed(user)], "admin", { name: "owner", namespace });
}

const tenants = () => [
  tenant("proxy-oil", { kind: "User", name: "proxy-alice" }),
  tenant("proxy-robots", { kind: "ServiceAccount", name: `system:serviceaccount:${cluster.namespace}:robot` }),
];
const namespaces = [
  ...OWN.map((name) => namespace(name, "proxy-oil")),
  namespace(FOREIGN, "proxy-gas"),
  namespace("proxy-robots-1", "proxy-robots"),
];
const access = () => proxyAccess(cluster.namespace);
let hadKind = true;

beforeAll(async () => {
  const server = cluster.config().getCurrentCluster()?.server ?? "";
  apiServerPort = Number(new URL(server).port);
  const crds = await cluster.client.resourceType("apiextensions.k8s.io/v1", "CustomResourceDefinition");
  hadKind = (await known(cluster.client.get(crds, "tenants.capsule.clastix.io"))) !== undefined;
  await installKinds(cluster.client, [capsuleTenant]);
  const robot = { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "robot", namespace: cluster.namespace } };
  const admins = OWN.map((name) => admin(name, "proxy-alice"));
  for (const manifest of [...access(), ...namespaces, ...admins, robot, ...tenants()]) await apply(manifest);

  const pki = path.join(path.dirname(controlPlane().kubeconfig), "pki");
  const file = (name: string) => path.join(pki, name);
  ca = fs.readFileSync(file("ca.crt"), "utf8");
  const authority = new TestAuthority({ certificate: ca, key: fs.readFileSync(file("ca.key"), "utf8") });
  users = {
    alice: await authority.user("proxy-alice", GROUP),
    bob: await authority.user("proxy-bob", GROUP),
    carol: await authority.user("proxy-carol"),
    robot: await tokenOf(cluster.namespace, "robot"),
  };

  const config = cluster.config();
  const token = await tokenOf(cluster.namespace, "kindstack-proxy");
  config.users = config.users.map(({ name }) => ({ name, token }));
  proxy = await startProxy({
    config,
    kind: capsuleTenant,
    view: capsuleNamespaceView,
    port: 0,
    host: "127.0.0.1",
    servingCertificate: () => readServingCertificate(file("serving.crt"), file("serving.key")),
    userGroups: [GROUP, `system:serviceaccounts:${cluster.namespace}`],
    refusedGroups: ["system:masters"],
    maxConnections: 1000,
    logger: pino({ level: "silent" }),
  });
  await eventually(() => expect(proxy.notReady).toBeUndefined());
});
afterAll(async () => {
  await proxy.stop(0);
  for (const manifest of [...tenants(), ...namespaces, ...access().reverse()]) await remove(manifest);
  if (!hadKind) {
    const crd = customResourceDefinition(capsuleTenant);
    await remove(crd);
    const type = await cluster.client.resourceType(crd.apiVersion, crd.kind);
    // The next installation must not find it while it is being deleted.
    await eventually(async () =>
      expect(await known(cluster.client.get(type, crd.metadata.name ?? ""))).toBeUndefined(),
    );
  }
});

function through(user: User, changes: Partial<Question> = {}): Question {
  return { port: proxy.port, ca, as: users[user], ...changes };
}

function direct(user: User, changes: Partial<Question> = {}): Question {
  return { ...through(user, changes), port: apiServerPort };
}

const json = async (question: Question) => JSON.parse((await ask(question)).body);
/** What the proxy answers, and what the API server answers without it. */
const bothWays = async (user: User, question: Partial<Question>) =>
  [await ask(through(user, question)), await ask(direct(user, question))] as const;

/** The names of those that are not on their way out. */
async function listed(user: User, query = ""): Promise<string[]> {
  const { status, body } = await ask(through(user, { path: NAMESPACES + query }));
  expect(status, body).toBe(200);
  const items: Manifest[] = JSON.parse(body).items;
  return items.flatMap(({ metadata: { name = "", deletionTimestamp } }) => (deletionTimestamp ? [] : [name]));
}

const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

describe("a list of namespaces", () => {
  it("holds one's own, by a certificate and by a token", async () => {
    expect(await listed("alice")).toEqual(OWN);
    expect(await listed("robot")).toEqual(["proxy-robots-1"]);
  });

  it("is refused by the API server to those outside the user group", async () => {
    const [{ status, body }, refused] = await bothWays("carol", { path: NAMESPACES });
    expect(status).toBe(403);
    expect(body).toBe(refused.body);
  });

  it("holds all for who owns no tenant but may list all", async () => {
    const binding = bindingFor([userNamed("proxy-bob")], "view", { name: "proxy-test-bob" });
    await apply(binding);
    await expect.poll(() => listed("bob")).toEqual(expect.arrayContaining(["default", "kube-system", FOREIGN]));
    await remove(binding);
    await expect.poll(() => listed("bob")).toEqual([]);
  });

  it("is narrowed by one's own selectors, and never widened", async () => {
    const selected = (selector: string) => listed("alice", `?labelSelector=${encodeURIComponent(selector)}`);
    expect(await selected("kubernetes.io/metadata.name=proxy-oil-dev")).toEqual(["proxy-oil-dev"]);
    expect(await selected(`${GROUP}/tenant notin (proxy-oil)`)).toEqual([]);
    expect(await selected(`${GROUP}/tenant=proxy-gas`)).toEqual([]);
    expect(await listed("alice", "?labelSelector=&labelSelector=proxy")).toEqual(OWN);
    expect(await listed("alice", `?fieldSelector=metadata.name%3D${FOREIGN}`)).toEqual([]);
    for (const selector of ["a in (b", "x notin (a", "),proxy in (test", "||", `,${GROUP}/tenant in (proxy-gas)) #`]) {
      const path = `${NAMESPACES}?labelSelector=${encodeURIComponent(selector)}`;
      expect((await ask(through("alice", { path }))).status, selector).toBe(400);
    }
  });

  it("comes in pages, as a table or in another encoding", async () => {
    const { metadata, items } = await json(through("alice", { path: `${NAMESPACES}?limit=1` }));
    expect(items).toHaveLength(1);
    expect(await listed("alice", `?limit=1&continue=${metadata.continue}`)).toEqual([OWN[1]]);

    const { kind, rows } = await json(through("alice", { path: NAMESPACES, headers: { accept: TABLE } }));
    expect(kind).toBe("Table");
    expect(rows.map(({ cells }: { cells: unknown[] }) => cells[0])).toEqual(OWN);

    const accept = "application/vnd.kubernetes.protobuf";
    const { headers, body } = await ask(through("alice", { path: NAMESPACES, headers: { accept } }));
    expect(headers["content-type"]).toBe(accept);
    expect(body).toContain("proxy-oil-dev");
    expect(body).not.toContain(FOREIGN);
  });
});

describe("a watch of namespaces", () => {
  /** Begins one and gathers what it brings. */
  async function watch(query: string, headers: http.OutgoingHttpHeaders = {}) {
    const request = begin(through("alice", { path: `${NAMESPACES}?watch=true&${query}`, headers }));
    const [message] = (await once(request, "response")) as [http.IncomingMessage];
    let text = "";
    message.on("data", (chunk) => {
      text += chunk;
    });
    const events = () =>
      text
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line) as { type: string; object: Manifest & { code?: number } });
    return {
      status: message.statusCode,
      events,
      seen: () => events().map(({ type, object }) => `${type} ${object.metadata?.name ?? object.code}`),
      ended: new Promise((resolve) => message.once("close", resolve)),
      stop: () => request.destroy(),
    };
  }

  const now = async () => (await json(through("alice", { path: NAMESPACES }))).metadata.resourceVersion;

  it("brings new ones of one's own, and no others", async () => {
    const { seen, stop } = await watch(`resourceVersion=${await now()}`);
    const [own, other] = [namespace("proxy-oil-new", "proxy-oil"), namespace("proxy-other-new", "proxy-gas")];
    for (const manifest of [other, own]) await apply(manifest);
    await expect.poll(seen).toContain("ADDED proxy-oil-new");
    expect(seen().join()).not.toContain("proxy-other-new");
    for (const manifest of [own, other]) await remove(manifest);
    stop();
  });

  it("begins with all of one's own, and a bookmark, when that is asked for", async () => {
    const { seen, events, stop } = await watch(
      "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
    );
    await expect.poll(() => events().some(({ type }) => type === "BOOKMARK")).toBe(true);
    expect(seen()).toEqual(expect.arrayContaining(OWN.map((name) => `ADDED ${name}`)));
    stop();
  });

  it("brings rows of a table, with bookmarks", async () => {
    const query = `allowWatchBookmarks=true&resourceVersion=${await now()}&timeoutSeconds=20`;
    const { events, stop } = await watch(query, { accept: TABLE });
    const added = namespace("proxy-oil-table", "proxy-oil");
    await apply(added);
    // What the tests before have deleted may still change.
    const isAdded = (event: object) => JSON.stringify(event).includes("proxy-oil-table");
    await expect
      .poll(() => events().filter(isAdded)[0])
      .toMatchObject({
        type: "ADDED",
        object: { kind: "Table", columnDefinitions: expect.any(Array) },
      });
    stop();
    await remove(added);
  });

  it("ends when its user gains a tenant, and continues only after a new list", async () => {
    const gained = tenant("proxy-gas", { kind: "User", name: "proxy-alice" });
    const before = await now();
    const { events, ended } = await watch(`resourceVersion=${before}`);
    await apply(gained);
    await ended;
    expect(events().at(-1)).toMatchObject({ type: "ERROR", object: { kind: "Status", code: 410, reason: "Expired" } });
    expect((await watch(`resourceVersion=${before}`)).status).toBe(410);
    expect(await listed("alice")).toEqual([FOREIGN, ...OWN]);
    const anew = await watch(`resourceVersion=${await now()}`);
    expect(anew.status).toBe(200);

    await remove(gained);
    await anew.ended;
    expect(await listed("alice")).toEqual(OWN);
  });
});

describe("everything else", () => {
  /** As kubectl, k9s and Headlamp ask for it: which groups and resources there are, in one answer. */
  const AGGREGATED = ["v2", "v2beta1"]
    .map((version) => `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`)
    .concat("application/json")
    .join();

  it.each<[string, string, string?]>([
    ["GET", "/version"],
    ["GET", "/readyz"],
    ["GET", "/api", AGGREGATED],
    ["GET", "/apis", AGGREGATED],
    ["GET", "/apis/apps/v1"],
    ["GET", "/openapi/v3/api/v1"],
    ["GET", "/openapi/v2", "application/json"],
    ["GET", "/nothing"],
    ["GET", "/apis/metrics.k8s.io/v1beta1/nodes"],
    ["GET", "/api/v1/nodes?limit=500", TABLE],
    ["GET", `${NAMESPACES}/${OWN[0]}`],
    ["GET", `${NAMESPACES}/${FOREIGN}`],
    ["GET", `${NAMESPACES}/${OWN[0]}/pods?limit=500`, TABLE],
    ["GET", `${NAMESPACES}/${OWN[0]}/secrets?includeObject=Object`, TABLE],
    ["GET", `${NAMESPACES}/${FOREIGN}/secrets`],
    ["GET", "/api/v1/watch/namespaces"],
    ["GET", "/api/v1/secrets"],
    ["HEAD", NAMESPACES],
    ["DELETE", NAMESPACES],
    ["PATCH", `${NAMESPACES}/kube-system`],
  ])("is answered as without the proxy: %s %s", async (method, path, accept) => {
    for (const user of ["alice", "robot"] as const) {
      const [proxied, straight] = await bothWays(user, { method, path, ...(accept && { headers: { accept } }) });
      expect(proxied.status).toBe(straight.status);
      expect(withoutVersion(proxied.body)).toBe(withoutVersion(straight.body));
      expect(proxied.headers["content-type"]).toBe(straight.headers["content-type"]);
      expect(proxied.headers.vary).toBe(straight.headers.vary);
    }
  });

  const review = (kind: string, group: string, spec?: object): Partial<Question> => ({
    method: "POST",
    path: `/apis/${group}/v1/${kind.toLowerCase()}s`,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ apiVersion: `${group}/v1`, kind, spec }),
  });

  it("is a review of rules, with lists of namespaces beside what the API server tells", async () => {
    for (const namespace of [OWN[0], FOREIGN]) {
      const question = review("SelfSubjectRulesReview", "authorization.k8s.io", { namespace });
      const [proxied, straight] = (await bothWays("alice", question)).map(({ body }) => JSON.parse(body).status);
      const [first, ...rest] = proxied.resourceRules;
      expect(first).toEqual({ verbs: ["list", "watch"], apiGroups: [""], resources: ["namespaces"] });
      // The API server gives them in no order.
      const sorted = (rules: object[]) => rules.map((rule) => JSON.stringify(rule)).sort();
      expect(sorted(rest)).toEqual(sorted(straight.resourceRules));
      expect(sorted(proxied.nonResourceRules)).toEqual(sorted(straight.nonResourceRules));
    }
  });

  it("is done by the same user: name, UID, groups and all else that the API server knows", async () => {
    for (const user of ["alice", "robot"] as const) {
      const [proxied, straight] = await bothWays(user, review("SelfSubjectReview", "authentication.k8s.io"));
      expect(JSON.parse(proxied.body).status.userInfo).toEqual(JSON.parse(straight.body).status.userInfo);
    }
  });

  it("can change to the protocol of WebSockets, by which the API server sends a watch", async () => {
    const path = `${NAMESPACES}/${OWN[0]}/configmaps?watch=true`;
    const headers = {
      ...{ connection: "Upgrade", upgrade: "websocket", origin: "https://127.0.0.1" },
      ...{ "sec-websocket-version": "13", "sec-websocket-key": Buffer.alloc(16).toString("base64") },
    };
    const request = begin(through("alice", { path, headers }));
    request.once("response", ({ statusCode }) => request.destroy(new Error(`the answer was ${statusCode}`)));
    const [message, socket, head] = await once(request, "upgrade");
    expect(message.statusCode).toBe(101);
    const metadata = { name: "news", namespace: OWN[0] as string };
    await apply({ apiVersion: "v1", kind: "ConfigMap", metadata });
    let text = head.toString();
    socket.on("data", (chunk: Buffer) => {
      text += chunk;
    });
    await expect.poll(() => text).toContain('"name":"news"');
    socket.destroy();
  });
});

describe.skipIf(noKubectl !== undefined)(`kubectl${noKubectl ? ` (${noKubectl})` : ""}`, () => {
  let kubeconfig: { proxy: string; direct: string };

  beforeEach(() => {
    const { certificate, key } = users.alice as CertifiedKey;
    const [certData, keyData] = [certificate, key].map((text) => Buffer.from(text).toString("base64"));
    const write = (name: string, port: number) => {
      const config = cluster.config();
      config.clusters = config.clusters.map((known) => ({ ...known, server: `https://127.0.0.1:${port}` }));
      config.users = config.users.map(({ name }) => ({ name, certData, keyData }) as (typeof config.users)[number]);
      config.contexts = config.contexts.map((known) => ({ ...known, namespace: OWN[0] as string }));
      fs.writeFileSync(path.join(directory, name), config.exportConfig());
      return path.join(directory, name);
    };
    kubeconfig = { proxy: write("proxy", proxy.port), direct: write("direct", apiServerPort) };
  });

  function run(way: "proxy" | "direct", ...args: string[]): Promise<string> {
    return new Promise((resolve) => {
      const command = ["--kubeconfig", kubeconfig[way], ...args];
      execFile("kubectl", command, (_error, stdout, stderr) => resolve(stdout + stderr));
    });
  }

  it("shows just one's own namespaces, all of them, and new ones as they come", async () => {
    const shownOnce = await run("proxy", "get", "ns", "-o", "name");
    for (const name of OWN) expect(shownOnce).toContain(`namespace/${name}\n`);
    expect(shownOnce).not.toMatch(/proxy-gas|kube-system|robots/);
    expect(await run("direct", "get", "ns")).toContain("Forbidden");
    expect(await run("proxy", "get", "ns", FOREIGN)).toContain("Forbidden");
    expect(await run("proxy", "get", "ns", OWN[0] as string)).toContain("Active");

    const child = spawn("kubectl", ["--kubeconfig", kubeconfig.proxy, "get", "ns", "--watch"]);
    let shown = "";
    child.stdout.on("data", (chunk) => {
      shown += chunk;
    });
    await expect.poll(() => shown).toContain(OWN[1]);
    const added = namespace("proxy-oil-watched", "proxy-oil");
    await apply(added);
    await expect.poll(() => shown).toContain("proxy-oil-watched");
    child.kill();
    await once(child, "close");
    await remove(added);
  });

  it("is told that namespaces can be listed and watched, and nothing else that is not so", async () => {
    const mayIn = async (way: "proxy" | "direct", ...question: string[]) =>
      (await run(way, "auth", "can-i", ...question, "-n", FOREIGN)).includes("yes\n");
    for (const verb of ["list", "watch"]) {
      expect([await mayIn("direct", verb, "namespaces"), await mayIn("proxy", verb, "namespaces")]).toEqual([
        false,
        true,
      ]);
    }
    for (const resource of ["nodes", "secrets"]) expect(await mayIn("proxy", "list", resource)).toBe(false);
  });

  it("is told the same of exec, port-forward and logs as without the proxy", async () => {
    const pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "nowhere", namespace: OWN[0] as string },
      spec: { nodeSelector: { there: "is-none" }, containers: [{ name: "a", image: "a" }] },
    } as Manifest;
    await apply(pod);
    for (const [command, said] of [
      [["exec", "nowhere", "--", "true"], "does not have a host assigned"],
      [["port-forward", "nowhere", ":80"], "pod is not running"],
      [["logs", "-f", "nowhere"], ""],
    ] as const) {
      const [proxied, straight] = await Promise.all([run("proxy", ...command), run("direct", ...command)]);
      expect(proxied).toBe(straight);
      expect(proxied).toContain(said);
    }
    await remove(pod);
  });
});

/** What any write changes. */
function withoutVersion(body: string): string {
  return body.replaceAll(/"resourceVersion":"\d+"/g, "");
}

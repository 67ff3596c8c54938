import { once } from "node:events";
import http from "node:http";
import https from "node:https";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { pino } from "pino";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { KubernetesClient } from "../../providers/kubernetes/client";
import { startAdmissionServer } from "../../src/admission/server";
import { startInspectionServer } from "../../src/preview/server";
import { startProxy } from "../../src/proxy/proxy";
import { type Endpoints, startEndpoints } from "../../src/telemetry/endpoints";
import { createMetrics } from "../../src/telemetry/metrics";
import { readServingCertificate } from "../../src/tls/served-certificate";
import { capsuleTenant } from "../../stacks/kinds/capsule-tenant/kind";
import { capsuleNamespaceView } from "../../stacks/kinds/capsule-tenant/namespace-view";
import { FakeApiServer } from "../proxy/fixture";
import { TestAuthority } from "../tls/test-authority";

const CONNECTIONS = 1_000;
const SORTS = [
  "idle",
  "an unfinished handshake",
  "half-open",
  "slow headers",
  "slow bodies",
  "slow bodies of a known user",
  "one request a second",
  "one request a second of a known user",
  "answers that are not read",
] as const;
/** So long a good user asks, again and again: longer than any time-out of a connection that sends nothing. */
const SECONDS = 12;
const HOST = "127.0.0.1";
const logger = pino({ level: "silent" });

/** A listener, and what a good user asks there. */
interface Served {
  port: number;
  secure: boolean;
  method: "GET" | "POST";
  path: string;
  body?: string;
  close(): Promise<void>;
}

let authority: TestAuthority;
let api: FakeApiServer;
let client: KubernetesClient;
let endpoints: Endpoints;
let certificate: { cert: string; key: string };
/** Of the pages and metrics of the operator under test. */
let folder: string;

beforeAll(async () => {
  authority = await TestAuthority.create();
  const serving = await authority.server();
  certificate = { cert: serving.certificate, key: serving.key };
  api = new FakeApiServer();
  api.tokens.good = { username: "good", groups: [] };
  api.tokens.mallory = { username: "mallory", groups: [] };
  api.allowed = ["good", "mallory"];
  client = new KubernetesClient(await api.start(authority));
  for (const [name, text] of [
    ["tls.crt", certificate.cert],
    ["tls.key", certificate.key],
    ["ca.crt", authority.own.certificate],
  ] as const) {
    folder = path.dirname(api.file(name, text));
  }
});
afterAll(async () => {
  await client.close();
  await api.stop();
});

const tls = () => ({
  current: certificate,
  follow: async (listener: (context: typeof certificate) => unknown) => void (await listener(certificate)),
  close() {},
});

/** The operator's own listeners of one process: what presses one must not starve the probes either. */
const startOperator = () =>
  startEndpoints({
    httpPort: 0,
    httpHost: HOST,
    metricsPort: 0,
    metricsCertificate: folder,
    client,
    metrics: createMetrics(),
    ready: () => undefined,
    console: { path: "/console", answer: async () => ({ status: 200, body: "page" }) },
    logger,
  });
const portOf = (address = "") => Number(address.split(":").at(-1));
const nothing = async () => {};

const LISTENERS: Record<string, () => Promise<Served>> = {
  async probes() {
    const port = portOf(endpoints.addresses.http);
    return { port, secure: false, method: "GET", path: "/readyz", close: nothing };
  },
  async metrics() {
    const port = portOf(endpoints.addresses.metrics);
    return { port, secure: true, method: "GET", path: "/metrics", close: nothing };
  },
  async console() {
    const port = portOf(endpoints.addresses.metrics);
    return { port, secure: true, method: "GET", path: "/console", close: nothing };
  },
  async webhooks() {
    const handlers = new Map([["/admission/a", { maxBytes: 1 << 20, answer: () => ({}) }]]);
    const server = await startAdmissionServer({ port: 0, host: HOST, certificate: tls() as never, handlers, logger });
    return { ...server, secure: true, method: "POST", path: "/admission/a", body: "{}" };
  },
  async previews() {
    const engine = () => Promise.reject(new Error("there is no engine"));
    const server = await startInspectionServer({
      ...{ port: 0, host: HOST, tls: tls() as never, kinds: [capsuleTenant], client, engine, logger, graceMs: 0 },
    });
    const body = JSON.stringify({ kind: "tenant", name: "oil", namespace: "default" });
    return { ...server, secure: true, method: "POST", path: "/v1/history", body };
  },
  async proxy() {
    const proxy = await startProxy({
      config: api.behind(""),
      kind: capsuleTenant,
      view: capsuleNamespaceView,
      port: 0,
      host: HOST,
      servingCertificate: () => readServingCertificate(path.join(folder, "tls.crt"), path.join(folder, "tls.key")),
      clientCaFile: path.join(folder, "ca.crt"),
      userGroups: ["capsule.clastix.io"],
      refusedGroups: [],
      maxConnections: 1_000,
      logger,
    });
    await expect.poll(() => proxy.notReady).toBeUndefined();
    return { port: proxy.port, secure: true, method: "GET", path: "/api/v1/pods", close: () => proxy.stop(0) };
  },
};

let worker: Worker | undefined;
let listener: Served | undefined;
afterEach(async () => {
  await worker?.terminate();
  await listener?.close();
  await endpoints.close();
});

/** The time in ms of a request on a connection of its own. @throws when it fails */
async function ask({ port, secure, method, path, body }: Omit<Served, "close">): Promise<number> {
  const start = performance.now();
  const options = {
    ...{ host: HOST, port, path, agent: false, method },
    headers: { "content-type": "application/json", authorization: "Bearer good" },
  };
  const request = secure ? https.request({ ...options, ca: authority.own.certificate }) : http.request(options);
  request.end(body);
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  let text = "";
  for await (const chunk of response) text += chunk;
  // A preview that reaches the engine is answered that there is none here.
  if (response.statusCode !== 200 && !text.includes("there is no engine")) {
    throw new Error(`${response.statusCode}: ${text}`);
  }
  return performance.now() - start;
}

describe.each(Object.keys(LISTENERS))(`the listener of %s, with ${CONNECTIONS} hostile connections`, (name) => {
  it.each(SORTS)("answers a good user, and probes, within a second: %s", { timeout: 120_000 }, async (sort) => {
    endpoints = await startOperator();
    const one = (await LISTENERS[name]?.()) as Served;
    listener = one;
    const { close: _, ...target } = one;
    const probe = { port: portOf(endpoints.addresses.http), secure: false, method: "GET", path: "/readyz" } as const;
    worker = new Worker(path.join(__dirname, "hostile-clients.mjs"), {
      workerData: { ...target, sort, count: CONNECTIONS, token: "mallory" },
    });
    let opened = 0;
    worker.on("message", () => void opened++);
    await expect.poll(() => opened).toBeGreaterThanOrEqual(CONNECTIONS);

    const slowest = { user: 0, probe: 0 };
    for (const end = performance.now() + SECONDS * 1000; performance.now() < end; await delay(50)) {
      const [user, probed] = await Promise.all([ask(target), ask(probe)]);
      slowest.user = Math.max(slowest.user, user);
      slowest.probe = Math.max(slowest.probe, probed);
    }

    if (process.env.KINDSTACK_SHOW) console.log(name, sort, opened, slowest);
    expect(slowest.user).toBeLessThan(1_000);
    expect(slowest.probe).toBeLessThan(1_000);
  });
});

import { once } from "node:events";
import http from "node:http";
import https from "node:https";
import path from "node:path";
import { text } from "node:stream/consumers";
import { pino } from "pino";
import { expect, vi } from "vitest";
import { KubernetesClient } from "../../providers/kubernetes/client";
import { startAdmissionServer } from "../../src/admission/server";
import { startInspectionServer } from "../../src/preview/server";
import { startProxy } from "../../src/proxy/proxy";
import { startEndpoints } from "../../src/telemetry/endpoints";
import { createMetrics } from "../../src/telemetry/metrics";
import { readServingCertificate } from "../../src/tls/served-certificate";
import { capsuleTenant } from "../../stacks/kinds/capsule-tenant/kind";
import { capsuleNamespaceView } from "../../stacks/kinds/capsule-tenant/namespace-view";
import { FakeApiServer } from "../proxy/fixture";
import { TestAuthority } from "../tls/test-authority";

export const HOST = "127.0.0.1";
export const LISTENERS = ["probes", "metrics", "console", "webhooks", "previews", "proxy"] as const;
const logger = pino({ level: "silent" });

/** A listener, and what a good user asks there. */
export interface Served {
  port: number;
  secure: boolean;
  method: "GET" | "POST";
  path: string;
  body?: string;
}

/** The listeners of one process, behind an API server that knows the tokens `good` and `mallory`. */
export interface TestListeners {
  served: Record<(typeof LISTENERS)[number], Served>;
  ca: string;
  close(): Promise<void>;
}

export async function startListeners(): Promise<TestListeners> {
  const authority = await TestAuthority.create();
  const ca = authority.own.certificate;
  const { certificate: cert, key } = await authority.server();
  const api = new FakeApiServer();
  api.tokens.good = { username: "good", groups: [] };
  api.tokens.mallory = { username: "mallory", groups: [] };
  api.allowed = ["good", "mallory"];
  const client = new KubernetesClient(await api.start(authority));
  const [certFile, keyFile, clientCaFile] = [
    api.file("tls.crt", cert),
    api.file("tls.key", key),
    api.file("ca.crt", ca),
  ];
  const certificate = {
    current: { cert, key },
    follow: async (listener: (context: { cert: string; key: string }) => unknown) =>
      void (await listener({ cert, key })),
    close() {},
  } as never;
  const address = { port: 0, host: HOST };

  const endpoints = await startEndpoints({
    httpPort: 0,
    httpHost: HOST,
    metricsPort: 0,
    metricsCertificate: path.dirname(certFile),
    client,
    metrics: createMetrics(),
    ready: () => undefined,
    console: { path: "/console", answer: async () => ({ status: 200, body: "page" }) },
    logger,
  });
  const handlers = new Map([["/admission/a", { maxBytes: 1 << 20, answer: () => ({}) }]]);
  const webhooks = await startAdmissionServer({ ...address, certificate, handlers, logger });
  const engine = () => Promise.reject(new Error("there is no engine"));
  const kinds = [capsuleTenant];
  const previews = await startInspectionServer({
    ...address,
    tls: certificate,
    kinds,
    client,
    engine,
    logger,
    graceMs: 0,
  });
  const proxy = await startProxy({
    ...address,
    config: api.behind(""),
    kind: capsuleTenant,
    view: capsuleNamespaceView,
    servingCertificate: () => readServingCertificate(certFile, keyFile),
    clientCaFile,
    userGroups: ["capsule.clastix.io"],
    refusedGroups: [],
    maxConnections: 1_000,
    logger,
  });
  await vi.waitFor(() => expect(proxy.notReady).toBeUndefined(), { timeout: 60_000 });

  const portOf = (listening = "") => Number(listening.split(":").at(-1));
  const metricsPort = portOf(endpoints.addresses.metrics);
  const historyOf = JSON.stringify({ kind: "tenant", name: "oil", namespace: "default" });
  return {
    served: {
      probes: { port: portOf(endpoints.addresses.http), secure: false, method: "GET", path: "/readyz" },
      metrics: { port: metricsPort, secure: true, method: "GET", path: "/metrics" },
      console: { port: metricsPort, secure: true, method: "GET", path: "/console" },
      webhooks: { port: webhooks.port, secure: true, method: "POST", path: "/admission/a", body: "{}" },
      previews: { port: previews.port, secure: true, method: "POST", path: "/v1/history", body: historyOf },
      proxy: { port: proxy.port, secure: true, method: "GET", path: "/api/v1/pods" },
    },
    ca,
    async close() {
      await Promise.all([endpoints.close(), webhooks.close(), previews.close(), proxy.stop(0)]);
      await client.close();
      await api.stop();
    },
  };
}

/**
 * Asks on a connection of its own.
 *
 * @param localAddress that it comes from
 * @returns the time in ms
 * @throws when it fails
 */
export async function ask(
  { port, secure, method, path, body }: Served,
  ca: string,
  localAddress: string,
  token = "good",
): Promise<number> {
  const start = performance.now();
  const options = {
    ...{ host: HOST, port, path, agent: false, method, localAddress },
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
  };
  const request = secure ? https.request({ ...options, ca }) : http.request(options);
  request.end(body);
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  const answer = await text(response);
  // A preview that reaches the engine is answered that there is none here.
  if (response.statusCode !== 200 && !answer.includes("there is no engine")) {
    throw new Error(`${response.statusCode}: ${answer}`);
  }
  return performance.now() - start;
}

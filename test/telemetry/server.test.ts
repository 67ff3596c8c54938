import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createMetrics, type Metrics } from "../../src/telemetry/metrics";
import { startTelemetryServer, type TelemetryServer } from "../../src/telemetry/server";

let metrics: Metrics;
let server: TelemetryServer;
let unhealthy: string | undefined;
let unready: string | undefined;

beforeEach(async () => {
  metrics = createMetrics();
  unhealthy = unready = undefined;
  server = await startTelemetryServer({
    port: 0,
    host: "127.0.0.1",
    metrics,
    healthy: () => unhealthy,
    ready: () => unready,
  });
});

afterEach(() => server.close());

async function get(path: string, method = "GET"): Promise<{ status: number; body: string; headers: Headers }> {
  const response = await fetch(`http://127.0.0.1:${server.port}${path}`, { method });
  return { status: response.status, body: await response.text(), headers: response.headers };
}

describe("telemetry server", () => {
  it("answers 200 ok while all is well", async () => {
    expect(await get("/healthz")).toMatchObject({ status: 200, body: "ok" });
    expect(await get("/readyz?verbose")).toMatchObject({ status: 200, body: "ok" });
  });

  it("answers 503 and the reason, for health and readiness apart", async () => {
    unready = "informers have not synced";
    expect(await get("/readyz")).toMatchObject({ status: 503, body: "informers have not synced" });
    expect((await get("/healthz")).status).toBe(200);
    unhealthy = "the watch of tenants is silent";
    expect(await get("/healthz")).toMatchObject({ status: 503, body: "the watch of tenants is silent" });
  });

  it("serves the metrics in Prometheus' format", async () => {
    metrics.driftRepairs.inc({ kind: "Tenant" });
    const { status, body, headers } = await get("/metrics");
    expect(status).toBe(200);
    expect(headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/);
    expect(body).toContain('kindstack_drift_repairs_total{kind="Tenant"} 1');
  });

  it("answers HEAD without a body", async () => {
    expect(await get("/healthz", "HEAD")).toMatchObject({ status: 200, body: "" });
  });

  it("answers 404 for other paths and 405 for other methods", async () => {
    expect((await get("/")).status).toBe(404);
    expect((await get("/healthz/more")).status).toBe(404);
    const refused = await get("/healthz", "POST");
    expect(refused.status).toBe(405);
    expect(refused.headers.get("allow")).toBe("GET, HEAD");
  });

  it("answers 500 when a metric cannot be computed", async () => {
    metrics.informer("tenants", () => {
      throw new Error("no informer");
    });
    expect(await get("/metrics")).toMatchObject({ status: 500, body: "no informer" });
  });

  it("fails to start on a port that is taken", async () => {
    const again = startTelemetryServer({
      port: server.port,
      host: "127.0.0.1",
      metrics,
      healthy: () => undefined,
      ready: () => undefined,
    });
    await expect(again).rejects.toThrow(/EADDRINUSE/);
  });

  it("refuses connections after close, even with a client that keeps its connection", async () => {
    await get("/healthz");
    await server.close();
    await expect(get("/healthz")).rejects.toThrow();
  });
});

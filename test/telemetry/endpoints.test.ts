import { once } from "node:events";
import { get as httpGet, type IncomingMessage } from "node:http";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type EndpointOptions, type Endpoints, startEndpoints } from "../../src/telemetry/endpoints";
import { createMetrics, type Metrics } from "../../src/telemetry/metrics";

let metrics: Metrics;
let server: Endpoints;
let unready: string | undefined;
let logged: object[];

const start = (options: Partial<EndpointOptions> = {}) =>
  startEndpoints({
    httpPort: 0,
    httpHost: "127.0.0.1",
    client: { json: () => Promise.reject(new Error("the API server is not asked")) },
    ready: () => unready,
    metrics,
    logger: { debug: (fields: object) => logged.push(fields), warn: (fields: object) => logged.push(fields) } as never,
    ...options,
  });
const portOf = ({ addresses }: Endpoints) => Number(addresses.http.split(":").at(-1));

beforeEach(async () => {
  metrics = createMetrics();
  unready = undefined;
  logged = [];
  server = await start();
});
afterEach(() => server.close());

async function get(path: string, init: RequestInit = {}): Promise<{ status: number; body: string; headers: Headers }> {
  const response = await fetch(`http://127.0.0.1:${portOf(server)}${path}`, init);
  return { status: response.status, body: await response.text(), headers: response.headers };
}

describe("the probes", () => {
  it("answer 200 ok while all is well", async () => {
    expect(await get("/healthz")).toMatchObject({ status: 200, body: "ok" });
    expect(await get("/readyz?verbose")).toMatchObject({ status: 200, body: "ok" });
  });

  it("answer 503, for health and readiness apart, and tell the reason to the log alone", async () => {
    await get("/readyz");
    unready = "the informer of secret-project has not synced";
    expect(await get("/readyz")).toMatchObject({ status: 503, body: "not ok" });
    expect((await get("/healthz")).status).toBe(200);
    expect(logged).toEqual([{ probe: "/readyz", reason: unready }]);
  });

  it("wait while the process starts, in place of failing", async () => {
    unready = "starting";
    const answer = get("/readyz");
    expect((await get("/healthz")).status).toBe(200);
    unready = undefined;

    expect(await answer).toMatchObject({ status: 200, body: "ok" });
    expect(logged).toEqual([]);
  });

  it("answer HEAD without a body", async () => {
    expect(await get("/healthz", { method: "HEAD" })).toMatchObject({ status: 200, body: "" });
  });

  it("answer 404 for other paths and 405 for other methods", async () => {
    expect((await get("/")).status).toBe(404);
    expect((await get("/healthz/more")).status).toBe(404);
    const refused = await get("/healthz", { method: "POST", body: "x" });
    expect(refused.status).toBe(405);
    expect(refused.headers.get("allow")).toBe("GET, HEAD");
  });

  it("fail to start on a port that is taken", async () => {
    await expect(start({ httpPort: portOf(server) })).rejects.toThrow(/EADDRINUSE/);
  });

  it("are not there any more after close, even for a client that keeps its connection", async () => {
    await get("/healthz");
    await server.close();
    await expect(get("/healthz")).rejects.toThrow();
  });
});

describe("open metrics", () => {
  it("are served in Prometheus' format on the port of the probes", async () => {
    metrics.driftRepairs.inc({ kind: "Tenant" });
    const { status, body, headers } = await get("/metrics");
    expect(status).toBe(200);
    expect(headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/);
    expect(body).toContain('kindstack_drift_repairs_total{kind="Tenant"} 1');
  });

  it("are not there under the name of another site, which may resolve to this machine", async () => {
    const { port } = new URL(`http://${server.addresses.http}`);
    const request = httpGet({ host: "127.0.0.1", port, path: "/metrics", headers: { host: "evil.example" } });
    const [response] = (await once(request, "response")) as [IncomingMessage];
    response.resume();
    expect(response.statusCode).toBe(404);
  });

  it("are not there on a port that others may reach", async () => {
    await server.close();
    server = await start({ httpHost: "0.0.0.0" });
    expect((await get("/metrics")).status).toBe(404);
  });

  it("that cannot be computed are a 500 that says nothing, and an error in the log", async () => {
    metrics.informer("tenants", () => {
      throw new Error("no informer");
    });
    expect(await get("/metrics")).toMatchObject({ status: 500, body: "internal error\n" });
    expect(logged).toEqual([{ err: expect.objectContaining({ message: "no informer" }) }]);
  });
});

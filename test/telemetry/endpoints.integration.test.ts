import fs from "node:fs";
import path from "node:path";
import tls from "node:tls";
import { pino } from "pino";
import { Agent, request } from "undici";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import type { Manifest } from "../../providers/kubernetes/client";
import { type EndpointOptions, type Endpoints, startEndpoints } from "../../src/telemetry/endpoints";
import { createMetrics } from "../../src/telemetry/metrics";
import { certificateFiles } from "../../src/tls/served-certificate";
import { useDirectory } from "../directories";
import { tokenOf } from "../e2e/objects";
import { TestCluster } from "../providers/kubernetes/test-cluster";
import { roleFor } from "../rights";
import { TestAuthority } from "../tls/test-authority";

const anyone = new Agent({ connect: { rejectUnauthorized: false } });
const cluster = TestCluster.use();
const opened: Endpoints[] = [];
const granted: Manifest[] = [];
afterAll(async () => {
  for (const manifest of granted) await cluster.client.delete(manifest, manifest.metadata.name ?? "");
  await anyone.close();
});
afterEach(async () => {
  for (const endpoints of opened.splice(0)) await endpoints.close();
});

async function open(options: Partial<EndpointOptions> = {}): Promise<{ http: string; metrics: string }> {
  const endpoints = await startEndpoints({
    httpPort: 0,
    httpHost: "127.0.0.1",
    metricsPort: 0,
    client: cluster.client,
    metrics: createMetrics(),
    ready: () => undefined,
    logger: pino({ level: "silent" }),
    ...options,
  });
  opened.push(endpoints);
  const { http, metrics = "" } = endpoints.addresses;
  return { http, metrics };
}

/** A token of a new service account. */
async function tokenOfNew(name: string): Promise<string> {
  const accounts = `/api/v1/namespaces/${cluster.namespace}/serviceaccounts`;
  await cluster.client.json("POST", accounts, { body: { metadata: { name } } });
  return tokenOf(cluster.namespace, name);
}

async function scrape(address: string, token?: string): Promise<{ status: number; body: string }> {
  const response = await request(`https://${address}/metrics`, {
    dispatcher: anyone,
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
  });
  return { status: response.statusCode, body: await response.body.text() };
}

/** Lets an account get a path. */
async function mayGet(path: string, account: string, name: string): Promise<void> {
  const subject = { kind: "ServiceAccount", name: account, namespace: cluster.namespace };
  for (const manifest of roleFor([subject], [{ nonResourceURLs: [path], verbs: ["get"] }], { name })) {
    await cluster.client.create(manifest);
    granted.push(manifest);
  }
}

describe("protected metrics", () => {
  it("are for service accounts that the cluster lets read them, and for no other", async () => {
    const [reader, other] = [await tokenOfNew("reader"), await tokenOfNew("other")];
    await mayGet("/metrics", "reader", cluster.namespace);
    const { metrics } = await open();

    // The authorizer learns of a binding a moment after it was made; a server of ours remembers the refusal.
    await expect.poll(async () => (await scrape((await open()).metrics, reader)).status).toBe(200);
    const all = await Promise.all([undefined, "forged", other, reader].map((token) => scrape(metrics, token)));

    expect(all.map(({ status }) => status)).toEqual([401, 401, 403, 200]);
    expect(all.map(({ body }) => body.includes("process_cpu_seconds_total"))).toEqual([false, false, false, true]);
  });

  it("are not on the port of the probes, and say nothing without TLS", async () => {
    const { http, metrics } = await open();
    const probes = await request(`http://${http}/metrics`);
    await probes.body.dump();
    expect(probes.statusCode).toBe(404);
    await expect(request(`http://${metrics}/metrics`)).rejects.toThrow();
  });

  it("are refused to everybody while the API server does not answer", async () => {
    const client = { json: () => cluster.client.json("GET", "/apis/there.is.none/v1") } as never;
    const { metrics } = await open({ client });
    expect((await scrape(metrics, "token")).status).toBe(503);
  });
});

it("the protected console is for accounts that may get its path, and takes their token as a browser's password", async () => {
  const name = `${cluster.namespace}-console`;
  const [viewer, other] = [await tokenOfNew("viewer"), await tokenOfNew("stranger")];
  await mayGet("/console", "viewer", name);
  const console = { path: "/console", answer: async () => ({ status: 200, body: "objects" }) };
  const ask = async (address: string, authorization: string, place: string) => {
    const headers = authorization === "" ? {} : { authorization };
    const response = await request(`https://${address}${place}`, { dispatcher: anyone, headers });
    const body = await response.body.text();
    return { status: response.statusCode, body, asks: response.headers["www-authenticate"] };
  };
  const asPassword = (token: string) => `Basic ${Buffer.from(`anybody:${token}`).toString("base64")}`;
  await expect
    .poll(async () => (await ask((await open({ console })).metrics, `Bearer ${viewer}`, "/console")).status)
    .toBe(200);
  const { metrics } = await open({ console });

  expect(await ask(metrics, "", "/console")).toMatchObject({ status: 401, asks: expect.stringContaining("Basic") });
  expect((await ask(metrics, asPassword("forged"), "/console")).status).toBe(401);
  expect(await ask(metrics, asPassword(other), "/console/style.css")).toMatchObject({ status: 403 });
  expect(await ask(metrics, asPassword(viewer), "/console/style.css")).toMatchObject({ status: 200, body: "objects" });
  expect((await ask(metrics, `Bearer ${viewer}`, "/metrics")).status).toBe(403); // a right of its own
});

describe("a certificate in a folder", () => {
  const folder = useDirectory();

  /** Writes a certificate of that name as a mounted Secret has it. */
  async function write(name: string): Promise<void> {
    const { certificate, key } = await (await TestAuthority.create()).server(name);
    for (const [file, text] of Object.entries({ "tls.crt": certificate, "tls.key": key })) {
      const aside = path.join(folder, `${file}.new`);
      fs.writeFileSync(aside, text);
      fs.renameSync(aside, path.join(folder, file)); // a reader sees the old or the new one, and no part of it
    }
  }

  /** Whose certificate a server shows. */
  function nameAt(address: string): Promise<string> {
    const [host = "", port] = address.split(":");
    return new Promise((resolve, reject) => {
      const socket = tls.connect({ host, port: Number(port), rejectUnauthorized: false }, () => {
        resolve(String(socket.getPeerCertificate().subject.CN));
        socket.destroy();
      });
      socket.on("error", reject);
    });
  }

  it("is shown, and nothing starts without one that can be used", async () => {
    await expect(open({ metricsCertificate: path.join(folder, "missing") })).rejects.toMatchObject({
      reason: "Misconfigured",
      message: expect.stringContaining("--metrics-certificate: ENOENT"),
    });
    await expect(certificateFiles("--preview-certificate", "missing", pino({ level: "silent" }))).rejects.toThrow(
      "--preview-certificate: ENOENT",
    );
    await write("first");
    expect(await nameAt((await open({ metricsCertificate: folder })).metrics)).toBe("first");
  });

  it("is read again when it changes, and kept while what is there cannot be used", async () => {
    await write("old");
    const failures: unknown[] = [];
    const logger = { info() {}, warn: (fields: unknown) => failures.push(fields) } as never;
    const served = await certificateFiles("--metrics-certificate", folder, logger, 10);
    let changes = 0;
    await served.follow(() => void changes++);
    const { cert } = served.current;

    fs.writeFileSync(path.join(folder, "tls.key"), "no key");
    await expect.poll(() => failures.length).toBeGreaterThan(0);
    expect(served.current.cert).toBe(cert);

    await write("new");
    await expect.poll(() => changes).toBe(2);
    expect(served.current.cert).not.toBe(cert);
    served.close();
  });
});

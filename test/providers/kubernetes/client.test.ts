import { once } from "node:events";
import { createServer, type RequestListener, type ServerResponse } from "node:http";
import { createSecureServer } from "node:http2";
import https from "node:https";
import { type AddressInfo, connect, type Server } from "node:net";
import { type Cluster, KubeConfig } from "@kubernetes/client-node";
import { afterEach, describe, expect, it, vi } from "vitest";
import { KubernetesClient, known } from "../../../providers/kubernetes/client";
import { caBundleOf, renew } from "../../../src/tls/material";
import { retryable, terminal } from "../failures";

let servers: Server[] = [];
let client: KubernetesClient;

async function listen(server: Server): Promise<number> {
  servers.push(server.listen(0, "127.0.0.1"));
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

function connectTo(cluster: Omit<Cluster, "name">): void {
  const config = new KubeConfig();
  config.loadFromClusterAndUser({ name: "test", ...cluster }, { name: "test", token: "one" });
  client = new KubernetesClient(config);
}

async function serve(answer: RequestListener): Promise<void> {
  const port = await listen(createServer(answer));
  connectTo({ server: `http://127.0.0.1:${port}`, skipTLSVerify: true });
}

/** A CA, and a certificate of 127.0.0.1. */
function materialOfTest() {
  const lifetimes = { caMs: 86_400_000, servingMs: 3_600_000 };
  const names = { name: "a CA of the test", names: ["127.0.0.1"] };
  return renew(undefined, { ...names, lifetimes, now: Date.now(), nextIsKnown: false });
}

afterEach(async () => {
  await client.close();
  for (const server of servers) server.close();
  servers = [];
});

it.each([200, 500])("an answer that breaks off with the status %i is no answer", async (status) => {
  await serve((_, response) => {
    response.writeHead(status, { "content-length": 100 });
    response.write('{"kind":');
    setImmediate(() => response.destroy());
  });

  const message = /^the API server at http:\/\/127\.0\.0\.1:\d+ did not answer: /;
  await expect(client.json("GET", "/version")).rejects.toEqual(retryable("Unreachable", message));
});

it("an object of a namespace that names none is for the author of a kind to correct", async () => {
  await serve(() => {});
  const asked = known(client.find({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" } }));
  await expect(asked).rejects.toEqual(terminal("InvalidProgram", /^ConfigMap a needs a namespace$/));
});

it("what ends the work that asks is thrown as it is", async () => {
  await serve(() => {}); // and never answers
  const stop = new AbortController();

  const asking = client.json("GET", "/version", { signal: stop.signal });
  stop.abort(new Error("stopped"));

  await expect(asking).rejects.toThrow("stopped");
});

it("the connections to an API server that speaks HTTP/2 as well speak HTTP/1.1, which survives requests that are given up", async () => {
  const { serving } = await materialOfTest();
  const server = createSecureServer({ cert: serving.certificate, key: serving.key, allowHTTP1: true });
  server.on("request", (request: { httpVersion: string }, response: ServerResponse) => {
    response.end(request.httpVersion);
  });
  connectTo({ server: `https://127.0.0.1:${await listen(server)}`, skipTLSVerify: true });
  expect(await client.json("GET", "/version")).toBe("1.1");
});

describe("the proxy-url of a kubeconfig", () => {
  it("is how the API server is reached, whose certificate is still verified", async () => {
    const material = await materialOfTest();
    const { certificate: cert, key } = material.serving;
    const caData = Buffer.from(caBundleOf(material)).toString("base64");
    const port = await listen(
      https.createServer({ cert, key }, ({ headers }, response) => response.end(headers.authorization)),
    );
    const asked: unknown[] = [];
    const proxy = createServer().on("connect", ({ url, headers }, socket) => {
      asked.push([url, headers["proxy-authorization"], headers.authorization]);
      const through = connect(port, "127.0.0.1", () => {
        socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
        socket.pipe(through).pipe(socket);
      });
    });
    const proxyUrl = `http://user:word@127.0.0.1:${await listen(proxy)}`;
    const server = `https://127.0.0.1:${port}`;

    connectTo({ server, proxyUrl, caData, skipTLSVerify: false });
    expect(await client.json("GET", "/version")).toBe("Bearer one");
    expect(asked).toEqual([[`127.0.0.1:${port}`, `Basic ${btoa("user:word")}`, undefined]]);
    await client.close();

    connectTo({ server, proxyUrl, skipTLSVerify: false });
    await expect(client.json("GET", "/version")).rejects.toThrow("unable to verify the first certificate");
  });

  it("is that of the environment where it has none", async () => {
    const asked: unknown[] = [];
    const proxy = createServer().on("connect", ({ url }, socket) => {
      asked.push(url);
      socket.end("HTTP/1.1 502 No\r\n\r\n");
    });
    vi.stubEnv("HTTPS_PROXY", `http://127.0.0.1:${await listen(proxy)}`);
    vi.stubEnv("NO_PROXY", "10.0.0.0/8");
    connectTo({ server: "https://192.0.2.1:6443", skipTLSVerify: true });
    await expect(client.json("GET", "/version")).rejects.toMatchObject({ reason: "Unreachable" });
    vi.unstubAllEnvs();
    expect(asked).toEqual(["192.0.2.1:6443"]);
  });

  it("is refused by name if it is of another kind", async () => {
    connectTo({ server: "https://127.0.0.1:1", proxyUrl: "socks5://127.0.0.1:2", skipTLSVerify: true });

    const message = "the kubeconfig's proxy-url must begin with http:// or https://";
    await expect(client.json("GET", "/version")).rejects.toMatchObject({ reason: "Misconfigured", message });
  });
});

describe("a request that a busy server puts off", () => {
  const busyFor = (times: number) => {
    const requests: number[] = [];
    const body = JSON.stringify({ kind: "Status", reason: "TooManyRequests", message: "storage is (re)initializing" });
    const answer: RequestListener = (_request, response) => {
      if (requests.push(performance.now()) > times) response.end("{}");
      else response.writeHead(429, { "retry-after": "1" }).end(body);
    };
    return { requests, answer };
  };

  it("is repeated for a command, after the time that the server names", async () => {
    const { requests, answer } = busyFor(1);
    await serve(answer);

    expect(await client.patient().json("GET", "/version")).toEqual({});

    const [first = 0, second = 0] = requests;
    expect(requests).toHaveLength(2);
    expect(second - first).toBeGreaterThan(900);
  });

  it.each([
    ["is not repeated for an operator", "GET", () => client],
    ["is not repeated if it could be done twice", "POST", () => client.patient()],
  ] as const)("%s", async (_name, method, of) => {
    const { requests, answer } = busyFor(1);
    await serve(answer);

    const busy = { status: 429, message: "storage is (re)initializing" };
    await expect(of().json(method, "/api/v1/namespaces")).rejects.toMatchObject(busy);
    expect(requests).toHaveLength(1);
  });
});

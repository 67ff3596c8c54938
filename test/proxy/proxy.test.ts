import { once } from "node:events";
import type http from "node:http";
import https from "node:https";
import net from "node:net";
import tls from "node:tls";
import type { KubeConfig } from "@kubernetes/client-node";
import { type DestinationStream, pino } from "pino";
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { type ApiProxy, type ProxyOptions, startProxy } from "../../src/proxy/proxy";
import type { CertifiedKey } from "../../src/tls/certificate";
import { readServingCertificate } from "../../src/tls/served-certificate";
import { capsuleTenant } from "../../stacks/kinds/capsule-tenant/kind";
import { capsuleNamespaceView } from "../../stacks/kinds/capsule-tenant/namespace-view";
import { TestAuthority } from "../tls/test-authority";
import { ask, begin, FakeApiServer, type Question, textOf } from "./fixture";

let authority: TestAuthority;
let stranger: TestAuthority;
let serving: CertifiedKey;
let alice: CertifiedKey;
let api: FakeApiServer;
let config: KubeConfig;
let proxy: ApiProxy;
let log: string;

beforeAll(async () => {
  [authority, stranger] = await Promise.all([TestAuthority.create(), TestAuthority.create()]);
  [serving, alice] = await Promise.all([authority.server(), authority.user("alice", "capsule.clastix.io")]);
});
beforeEach(async () => {
  api = new FakeApiServer();
  api.tokens["token-of-bob"] = { username: "bob", groups: ["staff"] };
  config = await api.start(authority);
  log = "";
  await start();
});
afterEach(async () => {
  vi.useRealTimers();
  await proxy.stop(0);
  await api.stop();
});

/** @param without what has to stay out of the options */
async function start(options: Partial<ProxyOptions> = {}, without: { clientCa?: boolean } = {}): Promise<void> {
  const stream: DestinationStream = {
    write: (line) => {
      log += line;
    },
  };
  const [cert, key] = [api.file("tls.crt", serving.certificate), api.file("tls.key", serving.key)];
  proxy = await startProxy({
    config,
    kind: capsuleTenant,
    view: capsuleNamespaceView,
    port: 0,
    host: "127.0.0.1",
    servingCertificate: () => readServingCertificate(cert, key),
    ...(!without.clientCa && { clientCaFile: api.file("ca.crt", authority.own.certificate) }),
    userGroups: ["capsule.clastix.io"],
    refusedGroups: ["system:masters"],
    maxConnections: 100,
    logger: pino({ level: "info" }, stream),
    ...options,
  });
  await expect.poll(() => proxy.notReady).toBeUndefined();
}

/** The API server agrees to a change of the protocol. */
const switched = (protocol: string) =>
  `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n\r\n`;
const keptAlive = () => new https.Agent({ keepAlive: true, maxSockets: 1 });
const responseTo = async (asked: Question) => (await once(begin(asked), "response"))[0] as http.IncomingMessage;
const metrics = () => proxy.metrics.registry.metrics();

const SPDY = { connection: "Upgrade", upgrade: "SPDY/3.1" };
async function restart(...options: Parameters<typeof start>): Promise<void> {
  await proxy.stop(0);
  await start(...options);
}

const question = (changes: Partial<Question> = {}): Question => ({
  port: proxy.port,
  ca: authority.own.certificate,
  as: alice,
  ...changes,
});

describe("who is let in", () => {
  it("is the user of a certificate, acting under the credentials of the proxy", async () => {
    expect(await ask(question({ path: "/api/v1/pods?limit=1" }))).toMatchObject({ status: 200, body: "{}" });
    expect(api.arrivals).toMatchObject([{ method: "GET", url: "/api/v1/pods?limit=1" }]);
    expect(api.arrivals[0]?.headers).toMatchObject({
      authorization: ["Bearer token-of-the-proxy"],
      "impersonate-user": ["alice"],
      "impersonate-group": ["capsule.clastix.io", "system:authenticated"],
      "x-forwarded-for": ["127.0.0.1"],
    });
  });

  it("is the user of a token, who is asked about once for requests that come together or soon after", async () => {
    const answers = await Promise.all([1, 2, 3].map(() => ask(question({ as: "token-of-bob" }))));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(api.tokenReviews).toBe(1);
    expect(api.arrivals[0]?.headers).toMatchObject({
      authorization: ["Bearer token-of-the-proxy"],
      "impersonate-user": ["bob"],
    });
    expect(JSON.stringify(api.arrivals) + log).not.toContain("token-of-bob");
  });

  it("is no other user", async () => {
    const [foreign, server] = await Promise.all([stranger.user("alice"), authority.server()]);
    const expired = await authority.user("alice", undefined, new Date(Date.now() - 1000));
    const { as: _, ...anonymous } = question();
    for (const asked of [anonymous, ...[foreign, server, expired, "nonsense"].map((as) => question({ as }))]) {
      const { status, body } = await ask(asked);
      expect(status).toBe(401);
      expect(JSON.parse(body)).toMatchObject({ kind: "Status", reason: "Unauthorized", code: 401 });
    }
    expect((await ask({ ...anonymous, headers: { authorization: "Basic YTpi" } })).status).toBe(401);
    expect(api.arrivals).toEqual([]);
  });

  it("is not a certificate that expires while its connection lasts", async () => {
    const shortly = await authority.user("alice", undefined, new Date(Date.now() + 60_000));
    const agent = new https.Agent({ keepAlive: true, maxSockets: 1, cert: shortly.certificate, key: shortly.key });
    const { as: _, ...asked } = question({ agent });
    expect((await ask(asked)).status).toBe(200);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 60_000 });
    expect((await ask(asked)).status).toBe(401);
    agent.destroy();
  });

  it("is no one by certificate when there is no CA for users, whatever public CAs there are", async () => {
    const get = api.handle;
    api.handle = (request, response) => {
      if (request.url?.includes("extension-apiserver-authentication")) response.end('{"data":{}}');
      else get(request, response);
    };
    await restart({}, { clientCa: true });
    expect((await ask(question())).status).toBe(401);
    expect((await ask(question({ as: "token-of-bob" }))).status).toBe(200);
  });

  it("is no member of a group that is refused", async () => {
    const admin = await authority.user("admin", "system:masters");
    const { status, body } = await ask(question({ as: admin }));
    expect(status).toBe(403);
    expect(JSON.parse(body).message).toContain("system:masters");
    expect(api.arrivals).toEqual([]);
  });

  it("is told to try again when the API server cannot be asked about a token", async () => {
    await api.stop();
    api = new FakeApiServer();
    await api.start(authority);
    expect(await ask(question({ as: "token-of-bob" }))).toMatchObject({ status: 503, headers: { "retry-after": "1" } });
    expect((await ask(question())).status).toBe(503);
  });
});

describe("a request", () => {
  it("is refused with the header of another user, also when it is hidden from the next hop", async () => {
    for (const connection of ["close", "Impersonate-User"]) {
      const { status, body } = await ask(question({ headers: { "Impersonate-User": "root", connection } }));
      expect(status).toBe(403);
      expect(JSON.parse(body)).toMatchObject({ kind: "Status", reason: "Forbidden" });
    }
    expect(api.arrivals).toEqual([]);
  });

  it("stays the user's when the client declares the proxy's own headers to be for one hop", async () => {
    const connection = "impersonate-user, impersonate-group, authorization, x-forwarded-for";
    await ask(question({ headers: { connection } }));
    expect(api.arrivals[0]?.headers).toMatchObject({ "impersonate-user": ["alice"] });
    expect(api.arrivals[0]?.headers.connection).not.toContain(connection);
  });

  it.each(["GET", "DELETE", "POST"])("of %s cannot carry another one in its body", async (method) => {
    const hidden = "GET /api/v1/secrets HTTP/1.1\r\nhost: x\r\n\r\n";
    const agent = keptAlive();
    for (const headers of [
      { "transfer-encoding": "chunked" },
      { "content-length": hidden.length, connection: "content-length, keep-alive" },
    ]) {
      await ask(question({ method, path: "/api/v1/x", headers, body: hidden, agent }));
    }
    await ask(question({ path: "/last", agent }));
    agent.destroy();
    const arrivals = api.arrivals.map(({ url, body }) => `${url} ${body}`);
    expect(arrivals).toEqual([`/api/v1/x ${hidden}`, `/api/v1/x ${hidden}`, "/last "]);
  });

  it("whose target is no path is refused", async () => {
    expect((await ask(question({ path: "https://elsewhere/api" }))).status).toBe(400);
    expect(api.arrivals).toEqual([]);
  });

  it("shares a connection to the API server with those before it", async () => {
    const before = api.connections.size;
    for (let i = 0; i < 5; i++) await ask(question());
    expect(api.connections.size - before).toBe(1);
  });

  it("ends at the API server when its client goes away", async () => {
    const closed = new Promise((resolve) => {
      api.handle = (_request, response) => {
        response.write("{");
        response.once("close", resolve);
      };
    });
    const request = begin(question());
    await once(request, "response");
    request.destroy();
    await closed;
  });

  it.each([
    ["GET", "/api/v1/pods", "bob"],
    ["POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "member"],
  ])("of %s %s does not reach the API server when its client goes away before", async (method, path, as) => {
    api.tokens["token-of-member"] = { username: "member", groups: ["capsule.clastix.io"] };
    const review = Promise.withResolvers<void>();
    api.beforeTokenReview = () => review.promise;
    const request = begin(question({ as: `token-of-${as}`, method, path, body: method === "POST" ? "{}" : "" }));
    request.on("error", () => {});
    await expect.poll(() => api.tokenReviews).toBe(1);
    request.destroy();
    await expect.poll(() => log).toContain('"code":499');
    review.resolve();
    await expect.poll(metrics).toContain('{result="authenticated"} 1');
    expect((await ask(question())).status).toBe(200);
    expect(api.arrivals).toMatchObject([{ url: "/" }]);
    expect(api.connections.size).toBeLessThanOrEqual(3);
  });

  it("is in the access log, without its query", async () => {
    await ask(question({ path: "/api/v1/pods?secret=1" }));
    await expect.poll(() => log).toContain('"path":"/api/v1/pods"');
    expect(log).toMatch(/"user":"alice","view":"user","code":200/);
    expect(log).not.toContain("secret");
    const counted = 'kindstack_proxy_requests_total{view="user",type="request",code="200"} 1';
    expect(await metrics()).toContain(counted);
  });
});

describe("an answer", () => {
  it("comes as it is sent: status, each header line, body", async () => {
    api.handle = (_request, response) => {
      response.setHeader("warning", ["299 - a", "299 - b"]);
      response.writeHead(418, "Teapot", { "x-hop": "1", connection: "x-hop" });
      response.end("short and stout");
    };
    const { status, headers, body } = await ask(question());
    expect({ status, body }).toEqual({ status: 418, body: "short and stout" });
    expect(headers).toMatchObject({ warning: "299 - a, 299 - b" });
    expect(headers).not.toHaveProperty("x-hop");
  });

  it("to what a user may do adds what the proxy does for members of the user group", async () => {
    const member = await authority.user("dora", "capsule.clastix.io");
    const path = "/apis/authorization.k8s.io/v1/selfsubject";
    const answered = async (kind: string, body: object, changes: Partial<Question> = {}) => {
      api.handle = (_request, response) => response.writeHead(201).end(JSON.stringify(body));
      const asked = await ask(question({ as: member, method: "POST", path: `${path}${kind}reviews`, ...changes }));
      return JSON.parse(asked.body).status;
    };
    const access = (resourceAttributes: object) => ({ spec: { resourceAttributes }, status: { allowed: false } });
    const lists = access({ verb: "list", resource: "namespaces", namespace: "default" });

    expect(await answered("access", lists)).toMatchObject({ allowed: true });
    expect(api.arrivals.at(-1)?.headers).toMatchObject({ "impersonate-user": ["dora"], accept: ["application/json"] });
    expect(await answered("access", lists, { as: "token-of-bob" })).toEqual({ allowed: false });
    for (const attributes of [
      { verb: "delete", resource: "namespaces" },
      { verb: "list", resource: "nodes" },
      { verb: "list", resource: "namespaces", group: "example.com" },
      { verb: "watch", resource: "namespaces", name: "one" },
      { verb: "list", resource: "namespaces", subresource: "status" },
    ]) {
      expect(await answered("access", access(attributes))).toEqual({ allowed: false });
    }
    const rule = { verbs: ["get"], apiGroups: [""], resources: ["pods"] };
    expect(await answered("rules", { status: { resourceRules: [rule], incomplete: false } })).toEqual({
      resourceRules: [{ verbs: ["list", "watch"], apiGroups: [""], resources: ["namespaces"] }, rule],
      incomplete: false,
    });
  });

  it("that is cut off does not look whole", async () => {
    api.handle = (_request, response) => {
      response.write("half of");
      setImmediate(() => response.destroy());
    };
    await expect(ask(question())).rejects.toThrow("aborted");
  });

  it("shows its first line before there is anything to say", async () => {
    api.handle = (_request, response) => response.flushHeaders();
    const message = await responseTo(question({ path: "/api/v1/pods?watch=true" }));
    expect(message.statusCode).toBe(200);
    message.destroy();
  });
});

describe("a watch of one's own namespaces", () => {
  const oil = {
    metadata: { name: "oil", uid: "1", resourceVersion: "5" },
    spec: { owner: { kind: "User", name: "alice" } },
  };
  const path = "/api/v1/namespaces?watch=true&resourceVersion=10";

  async function watch(contentType = "application/json") {
    api.tenants = [oil];
    await restart();
    let events!: http.ServerResponse;
    api.handle = (_request, response) => {
      events = response;
      response.setHeader("content-type", contentType).write('{"type":"ADDED"}\n');
    };
    const message = await responseTo(question({ path }));
    let received = "";
    message.on("data", (chunk) => {
      received += chunk;
    });
    const text = once(message, "end").then(() => received);
    await expect.poll(() => received).toBe('{"type":"ADDED"}\n');
    const deleteTenant = () => api.tenantEvents?.write(`${JSON.stringify({ type: "DELETED", object: oil })}\n`);
    return { text, events, received: () => received, deleteTenant };
  }

  it("is the proxy's own request, for the tenants' namespaces only", async () => {
    const { text, events } = await watch();
    expect(api.arrivals[0]?.url).toContain("labelSelector=capsule.clastix.io%2Ftenant+in+%28oil%29");
    expect(api.arrivals[0]?.headers).not.toHaveProperty("impersonate-user");
    events.end();
    expect(await text).toBe('{"type":"ADDED"}\n');
  });

  it("ends when the tenants change, and tells the client to list again", async () => {
    const { text, deleteTenant } = await watch();
    deleteTenant();
    const [added, error = "", rest] = (await text).split("\n");
    expect([added, rest]).toEqual(['{"type":"ADDED"}', ""]);
    const object = { kind: "Status", code: 410, reason: "Expired" };
    expect(JSON.parse(error)).toMatchObject({ type: "ERROR", object });
  });

  it("ends without a word in an encoding that is not JSON", async () => {
    const { text, deleteTenant } = await watch("application/vnd.kubernetes.protobuf;stream=watch");
    deleteTenant();
    expect(await text).toBe('{"type":"ADDED"}\n');
  });

  it("does not break into an event", async () => {
    const { text, events, received, deleteTenant } = await watch();
    events.write('{"type":"MODI');
    await expect.poll(received).toContain("MODI");
    deleteTenant();
    expect(await text).toBe('{"type":"ADDED"}\n{"type":"MODI');
  });
});

describe("a change of the protocol", () => {
  it.each(["POST", "GET"])("by %s joins both connections, both ways", async (method) => {
    api.upgrade = (request, socket, head) => {
      socket.write(switched(request.headers.upgrade ?? ""));
      socket.write("hello ");
      socket.write(head);
      socket.pipe(socket);
    };
    const headers = { ...SPDY, "X-Stream-Protocol-Version": ["v4.channel.k8s.io", "v3.channel.k8s.io"] };
    const request = begin(question({ method, path: "/api/v1/namespaces/a/pods/b/exec?command=sh", headers }));
    const [message, socket, head] = (await once(request, "upgrade")) as [http.IncomingMessage, net.Socket, Buffer];
    expect(message.headers).toMatchObject({ upgrade: "SPDY/3.1", connection: "Upgrade" });
    socket.write("world");
    let text = head.toString();
    for await (const chunk of socket) {
      text += chunk;
      if (text.endsWith("world")) break;
    }
    expect(text).toBe("hello world");
    expect(api.arrivals[0]).toMatchObject({ method, url: "/api/v1/namespaces/a/pods/b/exec?command=sh" });
    expect(api.arrivals[0]?.headers).toMatchObject({
      upgrade: ["SPDY/3.1"],
      "impersonate-user": ["alice"],
      authorization: ["Bearer token-of-the-proxy"],
      "x-stream-protocol-version": ["v4.channel.k8s.io", "v3.channel.k8s.io"],
    });
    await expect.poll(() => log).toContain('"type":"upgrade","user":"alice","view":"user","code":101');
  });

  it("ends on both sides when one of them goes", async () => {
    const closed = new Promise((resolve) => {
      api.upgrade = (_request, socket) => {
        socket.write(switched("SPDY/3.1"));
        socket.once("close", resolve);
        socket.resume();
      };
    });
    const [, socket] = (await once(begin(question({ headers: SPDY })), "upgrade")) as [unknown, net.Socket];
    socket.destroy();
    await closed;
  });

  it("that the API server refuses is answered as it answers", async () => {
    api.upgrade = (_request, socket) => {
      socket.end("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno");
    };
    expect(await ask(question({ headers: SPDY }))).toMatchObject({ status: 403, body: "no" });
  });

  it("that is sent before an answer has come ends the connection, and nothing else", async () => {
    const socket = tls.connect({ port: proxy.port, ca: authority.own.certificate });
    socket.on("error", () => {});
    await once(socket, "secureConnect");
    const head = "GET / HTTP/1.1\r\nHost: x\r\n";
    socket.resume().write(`${head}\r\n${head}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
    await once(socket, "close");
    expect((await ask(question())).status).toBe(200);
  });

  it("is refused to who is not let in, or would be another, or has a body", async () => {
    expect((await ask(question({ as: "nonsense", headers: SPDY }))).status).toBe(401);
    expect((await ask(question({ headers: { ...SPDY, "impersonate-user": "root" } }))).status).toBe(403);
    expect((await ask(question({ method: "POST", headers: SPDY, body: "x" }))).status).toBe(400);
    expect(api.arrivals).toEqual([]);
  });

  it("never watches namespaces under the proxy's identity", async () => {
    api.upgrade = (_request, socket) => socket.end("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    const headers = { connection: "Upgrade", upgrade: "websocket" };
    expect((await ask(question({ path: "/api/v1/namespaces?watch=true", headers }))).status).toBe(403);
    expect(api.arrivals[0]).toMatchObject({ url: "/api/v1/namespaces?watch=true" });
    expect(api.arrivals[0]?.headers).toMatchObject({ "impersonate-user": ["alice"] });
  });
});

describe("the listener", () => {
  it("speaks TLS 1.2 at least", async () => {
    const old = { minVersion: "TLSv1.1", maxVersion: "TLSv1.1", ciphers: "ALL@SECLEVEL=0" } as const;
    const socket = tls.connect({ port: proxy.port, ca: authority.own.certificate, ...old });
    await expect(once(socket, "secureConnect")).rejects.toThrow();
  });

  it("refuses headers of more than 64 KiB", async () => {
    expect((await ask(question({ headers: { "x-long": "x".repeat(60_000) } }))).status).toBe(200);
    // Its answer is 431, which a client may not get to read while it still writes.
    await ask(question({ headers: { "x-long": "x".repeat(66_000) } })).catch(() => undefined);
    expect(api.arrivals).toHaveLength(1);
  });

  it("ends the connections of strangers where there are too many, and no user's", async () => {
    await restart({ maxConnections: 3 });
    const agent = keptAlive();
    expect((await ask(question({ agent }))).status).toBe(200);
    const strangers = Array.from({ length: 2_100 }, () => net.connect(proxy.port, "127.0.0.1"));
    const ended = Promise.race(strangers.map((socket, index) => once(socket, "close").then(() => index)));

    expect(await ended).toBe(0);
    expect(await metrics()).toMatch(/kindstack_proxy_dropped_connections_total [1-9]/);
    expect((await ask(question({ agent }))).status).toBe(200);
    for (const socket of strangers) socket.destroy();
    agent.destroy();
  });

  it("leaves room for others, however many connections one user opens", async () => {
    await restart({ maxConnections: 20 });
    const agents = Array.from({ length: 24 }, () => keptAlive());
    for (const agent of agents) expect((await ask(question({ agent }))).status).toBe(200);

    const bob = keptAlive();
    for (const _ of [1, 2]) {
      expect((await ask(question({ as: "token-of-bob", agent: bob }))).status).toBe(200);
      for (const agent of agents.slice(0, 8)) await ask(question({ agent }));
    }

    for (const agent of [bob, ...agents]) agent.destroy();
  });

  it("asks about few tokens at a time, once about each, and about none that is too long", async () => {
    const tokens = Array.from({ length: 40 }, (_, index) => `garbage-${index}`);
    for (const _ of [1, 2]) {
      const answers = await Promise.all(tokens.map((as) => ask(question({ as }))));
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]));
    }
    expect(api.tokenReviews).toBe(40);
    expect(api.mostTokenReviews).toBeLessThanOrEqual(32);

    expect((await ask(question({ as: "x".repeat(20_000) }))).status).toBe(401);
    expect(api.tokenReviews).toBe(40);
  });

  it("passes nothing on that could leave the prefix of the API server", async () => {
    await restart({ config: api.behind("/k8s/clusters/c-1") });
    for (const path of [
      ...["/../x", "/api/../../x", "/%2e%2e/x", "/api/..%2f..%2fx"],
      ...["/api/%252e%252e/x", "/a/..;/x", "/a/..\\x", "/a/."],
    ]) {
      expect((await ask(question({ path }))).status, path).toBe(400);
    }
    expect(api.arrivals).toEqual([]);
  });

  it("passes dots on that lead nowhere, below the prefix of the API server", async () => {
    await restart({ config: api.behind("/k8s/clusters/c-1") });
    const path = "/apis/a.b/v1/x..y/%2A?path=/../z";
    expect((await ask(question({ path }))).status).toBe(200);
    expect(api.arrivals).toMatchObject([{ url: `/k8s/clusters/c-1${path}` }]);
  });

  it("takes up a renewed certificate and another CA, and disconnects clients of the old one", async () => {
    await restart({ reloadMs: 20 });
    let events!: http.ServerResponse;
    api.handle = (_request, response) => {
      events = response;
      response.write("{");
    };
    const agent = keptAlive();
    const message = await responseTo(question({ agent }));
    const closed = once(message.socket, "close");

    const renewed = await stranger.server();
    api.file("tls.key", renewed.key); // half of it is no reason to stop
    await expect.poll(() => log).toContain("failed to reload certificates");
    api.file("tls.crt", renewed.certificate);
    api.file("ca.crt", stranger.own.certificate);
    await expect.poll(() => log).toContain("certificates were reloaded");

    api.handle = (_request, response) => response.end("{}");
    const bob = await stranger.user("bob");
    const renewedQuestion = question({ ca: stranger.own.certificate });
    expect((await ask({ ...renewedQuestion, as: bob })).status).toBe(200);
    expect((await ask({ ...renewedQuestion, as: alice })).status).toBe(401);
    events.end("}");
    expect(await textOf(message)).toBe("{}");
    await closed;
    agent.destroy();
  });

  it("ends watches when it stops, lets requests come to their end, and cuts what lasts too long", async () => {
    const running: http.ServerResponse[] = [];
    api.handle = (_request, response) => {
      running.push(response);
      response.write("{");
    };
    api.upgrade = (_request, socket) => {
      socket.write(switched("SPDY/3.1"));
      socket.resume();
    };
    const watch = await responseTo(question({ path: "/api/v1/pods?watch=true" }));
    const request = await responseTo(question({ path: "/api/v1/pods" }));
    const [, exec] = await once(begin(question({ headers: SPDY })), "upgrade");
    exec.resume();

    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const stopped = proxy.stop(500);
    expect(await textOf(watch)).toBe("{");
    expect(proxy.notReady).toBe("the proxy is stopping");
    await expect(ask(question())).rejects.toThrow("ECONNREFUSED");
    running[1]?.end("}");
    expect(await textOf(request)).toBe("{}");
    vi.advanceTimersByTime(499);
    expect(exec.destroyed).toBe(false);
    vi.advanceTimersByTime(1);
    await once(exec, "close");
    await stopped;
  });
});

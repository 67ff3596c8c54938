import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import https from "node:https";
import { text } from "node:stream/consumers";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { RetryableError } from "../../providers/errors";
import { answerReview, MAX_REVIEW_BYTES, type Reviewer } from "../../src/admission/review";
import { type AdmissionServerOptions, type ReviewHandler, startAdmissionServer } from "../../src/admission/server";
import type { Listener } from "../../src/http/server";
import { renew } from "../../src/tls/material";
import type { AdmissionRequest } from "../../stacks/contract/admission";
import { TestAuthority } from "../tls/test-authority";

const reviewed: AdmissionRequest[] = [];
const patch = [{ op: "add" as const, path: "/metadata/labels", value: {} }];
const REVIEWERS: Record<string, Reviewer["review"]> = {
  allow(request) {
    reviewed.push(request);
    return { allowed: true, patch };
  },
  refuse: () => ({ allowed: false, message: "allowed: a, b" }),
  never: () => new Promise(() => {}),
  throw() {
    throw new TypeError("secret detail");
  },
  async retry() {
    throw new RetryableError("Conflict", "try again");
  },
};

let server: Listener;
let ca: string;
let current: { cert: string; key: string };
beforeEach(async () => {
  reviewed.length = 0;
  const material = await renew(undefined, {
    name: "ca",
    names: ["127.0.0.1"],
    lifetimes: { caMs: 3_600_000, servingMs: 3_600_000 },
    now: Date.now(),
    nextIsKnown: false,
  });
  ca = material.ca.certificate;
  current = { cert: material.serving.certificate, key: material.serving.key };
  server = await start();
});
afterEach(() => server.close());

function start(options: Partial<AdmissionServerOptions> = {}, conversion?: ReviewHandler): Promise<Listener> {
  const certificate = {
    current,
    follow: async (listener: (context: typeof current) => void | Promise<void>) => listener(current),
    close: () => {},
  };
  const logger = pino({ level: "silent" });
  const handlers = new Map<string, ReviewHandler>();
  for (const [name, review] of Object.entries(REVIEWERS)) {
    const reviewer = { timeoutMs: name === "never" ? 20 : 1_000, review };
    const answer = (text: string) => answerReview(reviewer, text, logger);
    handlers.set(`/admission/kind/${name}`, { maxBytes: MAX_REVIEW_BYTES, answer });
  }
  if (conversion !== undefined) handlers.set("/convert/a", conversion);
  return startAdmissionServer({ port: 0, host: "127.0.0.1", certificate, handlers, logger, ...options });
}

const review = (request: object = {}) => ({
  apiVersion: "admission.k8s.io/v1",
  kind: "AdmissionReview",
  request: {
    uid: "1",
    operation: "CREATE",
    resource: { group: "apps", version: "v1", resource: "deployments" },
    userInfo: { username: "alice", groups: ["g"] },
    object: { metadata: {} },
    ...request,
  },
});

interface Reply {
  status: number | undefined;
  body: string;
}

const begin = (path: string, { headers, ...options }: https.RequestOptions = {}) =>
  https.request({
    ...{ host: "127.0.0.1", port: server.port, ca, agent: false, method: "POST", path, ...options },
    headers: { "content-type": "application/json", ...headers },
  });
async function send(path: string, body: string | Buffer, options?: https.RequestOptions): Promise<Reply> {
  const [response] = (await once(begin(path, options).end(body), "response")) as [IncomingMessage];
  return { status: response.statusCode, body: await text(response) };
}
const post = (name: string, value: unknown, options: https.RequestOptions = {}) =>
  send(`/admission/kind/${name}`, typeof value === "string" ? value : JSON.stringify(value), options);
const responseOf = ({ body }: Reply) => JSON.parse(body).response;

describe("a review", () => {
  it("is parsed, decided about and answered under its uid, with a patch", async () => {
    const object = { apiVersion: "v1", kind: "Namespace", metadata: { name: "a" } };

    const reply = await post("allow", review({ name: "a", object, oldObject: null, dryRun: true }));

    const { uid, allowed, patchType, patch: encoded } = responseOf(reply);

    expect({ uid, allowed, patchType }).toEqual({ uid: "1", allowed: true, patchType: "JSONPatch" });
    expect(JSON.parse(Buffer.from(encoded, "base64").toString())).toEqual(patch);
    const resource = { group: "apps", name: "deployments" };
    const user = { username: "alice", groups: ["g"] };
    const request = { uid: "1", operation: "CREATE", resource, name: "a", namespace: "", dryRun: true, user, object };
    expect(reviewed).toEqual([request]);
  });

  it.each([{ object: null }, { object: undefined }, { operation: "UPDATE" }, { operation: "DELETE", object: null }])(
    "that lacks an object is not decided about: %o",
    async (request) => {
      const { status, body } = await post("throw", review(request));
      expect(status).toBe(400);
      expect(body).toMatch(/a review of the operation (CREATE|UPDATE|DELETE) lacks an object/);
    },
  );

  it("that is refused says what is allowed", async () => {
    expect(responseOf(await post("refuse", review()))).toEqual({
      uid: "1",
      allowed: false,
      status: { status: "Failure", message: "allowed: a, b", code: 403, reason: "Forbidden" },
    });
  });

  it.each([
    ["takes too long", "never", "took too long"],
    ["fails", "throw", "could not decide: internal error"],
    ["says to try again", "retry", "could not decide: try again"],
  ])("that %s is refused, with nothing of the inside told", async (_, name, message) => {
    const { allowed, status } = responseOf(await post(name, review()));

    expect(allowed).toBe(false);
    expect(status).toMatchObject({ code: 503, message: expect.stringContaining(message) });
    expect(status.message).not.toContain("secret");
  });
});

describe("what is no review", () => {
  it.each([
    ["no JSON", "{", "not JSON"],
    ["nothing", "", "not JSON"],
    ["another kind of object", { kind: "Pod" }, "not an AdmissionReview"],
    ["another version", { ...review(), apiVersion: "admission.k8s.io/v1beta1" }, "/apiVersion"],
    ["no request", { ...review(), request: undefined }, "request"],
    ["no user", review({ userInfo: undefined }), "userInfo"],
    ["groups that are no texts", review({ userInfo: { groups: [1] } }), "groups"],
    ["an object that is none", review({ object: "text" }), "/request/object"],
    ["metadata that is none", review({ object: { metadata: "text" } }), "/request/object"],
    ["brackets without end", "[".repeat(100_000), "not JSON"],
  ])("such as %s is a bad request", async (_, body, message) => {
    const reply = await post("allow", body);

    expect(reply).toMatchObject({ status: 400, body: expect.stringContaining(message) });
    expect(reviewed).toEqual([]);
  });

  it("is refused by path, method and type", async () => {
    expect((await send("/", "{}")).status).toBe(404);
    expect((await send(`/admission/kind/allow`, "", { method: "GET" })).status).toBe(405);
    expect((await send(`/admission/kind/allow`, "{}", { headers: { "content-type": "text/plain" } })).status).toBe(415);
  });
});

describe("a server that knows the CA of the API servers", () => {
  let own: object;
  let others: object[];
  let clientCa: string;
  beforeEach(async () => {
    const [authority, other] = [await TestAuthority.create(), await TestAuthority.create()];
    const [{ certificate, key }, forged] = [await authority.user("a"), await other.user("a")];
    clientCa = authority.own.certificate;
    own = { cert: certificate, key };
    others = [{}, { cert: forged.certificate, key: forged.key }];
    await server.close();
  });

  it("answers no client without a certificate of it", async () => {
    server = await start({ clientCa });

    expect((await post("allow", review(), own)).status).toBe(200);
    for (const identity of others) await expect(post("allow", review(), identity)).rejects.toThrow();
  });

  it("answers conversions without one, as API servers show none for these, and still no review", async () => {
    server = await start({ clientCa }, { maxBytes: 100, answer: () => ({}), isOpen: true });

    for (const identity of others) {
      expect((await send("/convert/a", "{}", identity)).status).toBe(200);
      expect((await post("allow", review(), identity)).status).toBe(401);
      expect((await send("/nothing", "{}", identity)).status).toBe(401);
    }
    expect((await post("allow", review(), own)).status).toBe(200);
  });
});

describe("what is huge or slow", () => {
  const path = "/admission/kind/allow";

  it("is refused by its length before it is read", async () => {
    const headers = { "content-length": MAX_REVIEW_BYTES + 1 };

    expect((await send(path, "", { headers })).status).toBe(413);
  });

  it("is answered when it is as large as the API server's largest", async () => {
    const object = { metadata: {}, data: "a".repeat(3 * 1024 * 1024) };

    expect((await post("allow", review({ object, oldObject: object }))).status).toBe(200);
  });

  it("makes room for reviews of its address, and of others", async () => {
    const slow = Array.from({ length: 20 }, () => begin(path, { headers: { "content-length": MAX_REVIEW_BYTES } }));
    const part = Buffer.alloc(MAX_REVIEW_BYTES - 500_000);
    await Promise.all(
      slow.map((request) => {
        request.on("error", () => {});
        return new Promise((done) => request.once("close", done).write(part, done)); // some are ended
      }),
    );

    const object = { metadata: {}, data: "a".repeat(1_000_000) };
    for (const localAddress of ["127.0.0.1", "127.0.0.2"]) {
      expect((await post("allow", review({ object }), { localAddress })).status).toBe(200);
    }
    for (const request of slow) request.destroy();
  });

  it("is no error of the server when its client goes away", async () => {
    const lines: string[] = [];
    await server.close();
    server = await start({ logger: pino({ level: "debug" }, { write: (line) => void lines.push(line) }) });
    const request = begin(path, { headers: { "content-length": 100, expect: "100-continue" } });
    request.on("error", () => {}).flushHeaders();
    await once(request, "continue");
    request.destroy();

    await expect.poll(() => lines.join("")).toContain("review failed");
    expect(lines.join("")).not.toContain('"level":50');
  });
});

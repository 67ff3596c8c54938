import http from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { askOperator, type OperatorOptions } from "../../src/cli/ask-operator";
import { newReport } from "../../src/preview/report";
import { renew } from "../../src/tls/material";

const object = { kind: "podset", name: "pods", namespace: "default" };
const startTime = "2026-01-01T00:00:00Z";
const update = { kind: "update", startTime, result: "succeeded", resourceChanges: { create: 1 } };
const outputs = { type: "Pod", name: "pod", id: "default/pod", outputs: { phase: "Running" } };
const state = { version: 3, deployment: { manifest: {}, resources: [{ urn: "urn:pulumi:a", type: "t", id: "1" }] } };

let answer: { status: number; body: string };
let server: http.Server;
let operator: OperatorOptions;

beforeEach(async () => {
  server = http.createServer((_request, response) => response.writeHead(answer.status).end(answer.body));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  operator = { url: `http://127.0.0.1:${port}`, token: "t" };
});
afterEach(() => {
  server.close();
});

const files = { manifests: { objects: [], problems: [] }, namespace: "default", refresh: false };
const asks = {
  history: () => askOperator(operator, "/v1/history", object),
  outputs: () => askOperator(operator, "/v1/outputs", object),
  state: () => askOperator(operator, "/v1/state", object),
  preview: () => askOperator(operator, "/v1/preview", files),
};

describe("what an operator answers", () => {
  it.each([
    ["history", [update, { ...update, version: 2, endTime: "2026-01-01T00:00:01Z" }]],
    ["outputs", [outputs]],
    ["state", state],
    ["state", { version: 3, deployment: { resources: null } }],
    ["preview", newReport([])],
  ] as const)("is taken as it is: %s %#", async (ask, body) => {
    answer = { status: 200, body: JSON.stringify(body) };

    expect(await asks[ask]()).toEqual(body);
  });

  it.each([
    ["history", [{ ...update, startTime: 5 }], "/0/startTime must be string"],
    ["history", { updates: [] }, "the answer must be array"],
    ["outputs", [outputs, { ...outputs, outputs: "none" }], "/1/outputs must be object"],
    ["state", { version: 3 }, "the answer must have required properties deployment"],
    ["preview", { ...newReport([]), objects: [{}] }, "/objects/0 must have required"],
  ] as const)("is refused by name of what does not fit: %s %#", async (ask, body, why) => {
    answer = { status: 200, body: JSON.stringify(body) };

    await expect(asks[ask]()).rejects.toMatchObject({ reason: "Refused", message: expect.stringContaining(why) });
  });

  it("is refused when it is a page instead, as of a proxy that asks for a password", async () => {
    answer = { status: 200, body: "<html>Log in</html>" };

    await expect(asks.history()).rejects.toThrow(
      /cannot read the answer of http:.* to \/v1\/history: it is not JSON\. Is this the operator's address/,
    );
  });

  it("may be an error, which is shown", async () => {
    answer = { status: 403, body: JSON.stringify({ error: "user a may not get podsets" }) };
    await expect(asks.history()).rejects.toThrow("user a may not get podsets");
    answer = { status: 401, body: JSON.stringify({ error: "Unauthorized" }) };
    await expect(asks.history()).rejects.toThrow("does not know the token");
  });

  it.each([
    [404, "<html>Not Found</html>"],
    [502, "<html>Bad Gateway</html>"],
    [500, JSON.stringify({ error: { code: 1 } })],
    [401, JSON.stringify({ kind: "Status", message: "Unauthorized" })], // as an API server answers
    [403, JSON.stringify({ kind: "Status", message: "forbidden" })],
  ])("of another server is told from that of an operator: %i %s", async (status, body) => {
    answer = { status, body };
    await expect(asks.history()).rejects.toThrow(
      `${operator.url} answered /v1/history with status ${status}, which is no answer of an operator: check that --server has`,
    );
  });
});

it("an operator's certificate is refused when its CA is not known, and the error names the option for that", async () => {
  const lifetimes = { caMs: 86_400_000, servingMs: 3_600_000 };
  const of = { names: ["127.0.0.1"], lifetimes, now: Date.now(), nextIsKnown: false };
  const { ca: authority, serving } = await renew(undefined, { ...of, name: "a CA of the test" });
  const secure = https.createServer({ cert: serving.certificate, key: serving.key });
  await new Promise<void>((resolve) => secure.listen(0, "127.0.0.1", resolve));
  const { port } = secure.address() as AddressInfo;

  const other = await renew(undefined, { ...of, name: "another CA" });
  const untrusted = `the certificate of https://127.0.0.1:${port} is of no CA`;
  for (const [host, ca, message] of [
    ["127.0.0.1", undefined, `${untrusted} that Node.js trusts: name its CA with --server-ca`],
    ["127.0.0.1", other.ca.certificate, `${untrusted} in the file of --server-ca`],
    ["localhost", authority.certificate, expect.stringMatching(/is not for this name .*previewNames/)],
  ]) {
    const asked = askOperator({ url: `https://${host}:${port}`, token: "t", ...(ca && { ca }) }, "/v1/history", object);
    await expect(asked).rejects.toMatchObject({ reason: "Misconfigured", message });
  }
  secure.close();
});

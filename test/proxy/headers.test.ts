import { describe, expect, it } from "vitest";
import { hasBody, requestHeaders, withoutHopByHop } from "../../src/proxy/headers";

describe("the headers of a request", () => {
  it("are passed on as they came, with the client's address", () => {
    expect(
      requestHeaders(
        { accept: ["application/json"], "user-agent": ["kubectl"], "x-forwarded-for": ["10.1.1.1"] },
        "::1",
      ),
    ).toEqual({ accept: ["application/json"], "user-agent": ["kubectl"], "x-forwarded-for": "10.1.1.1, ::1" });
  });

  it.each(["impersonate-user", "Impersonate-Group", "IMPERSONATE-UID", "impersonate-extra-scopes", "impersonate-new"])(
    "are refused with %s",
    (name) => {
      expect(() => requestHeaders({ [name]: ["system:admin"] }, undefined)).toThrow(
        expect.objectContaining({ code: 403, message: expect.stringContaining(name) }),
      );
    },
  );

  it("lose the user's credentials, and what the API server believes of front proxies", () => {
    const headers = requestHeaders(
      {
        authorization: ["Bearer secret"],
        "x-remote-user": ["admin"],
        "x-remote-group": ["system:masters"],
        "x-remote-extra-scopes": ["all"],
        "sec-websocket-protocol": ["v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.c2VjcmV0"],
        host: ["proxy"],
        expect: ["100-continue"],
      },
      undefined,
    );
    expect(headers).toEqual({ "sec-websocket-protocol": "v5.channel.k8s.io" });
  });

  it("lose what is for this connection only, and what it names", () => {
    const headers = requestHeaders(
      {
        connection: ["keep-alive, X-Hop", "close"],
        "keep-alive": ["timeout=5"],
        te: ["trailers"],
        trailer: ["x"],
        "proxy-authorization": ["Basic secret"],
        "x-hop": ["1"],
        "x-stays": ["1"],
      },
      undefined,
    );
    expect(headers).toEqual({ "x-stays": ["1"] });
  });

  it("say how long the body is, also when the client would rather have that forgotten", () => {
    expect(requestHeaders({ "content-length": ["5"], connection: ["content-length"] }, undefined)).toEqual({
      "content-length": ["5"],
    });
    expect(requestHeaders({ "transfer-encoding": ["chunked"], "content-length": ["5"] }, undefined)).toEqual({
      "transfer-encoding": "chunked",
    });
    expect(hasBody({ "transfer-encoding": ["chunked"] })).toBe(true);
    expect(hasBody({ "content-length": ["5"] })).toBe(true);
    expect(hasBody({ "content-length": ["0"] })).toBe(false);
    expect(hasBody({})).toBe(false);
  });
});

it("the headers of an answer are the API server's, each line of them", () => {
  expect(
    withoutHopByHop({
      warning: ['299 - "one"', '299 - "two"'],
      "audit-id": ["1"],
      connection: ["close"],
      "transfer-encoding": ["chunked"],
    }),
  ).toEqual({ warning: ['299 - "one"', '299 - "two"'], "audit-id": ["1"] });
});

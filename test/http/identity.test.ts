import { X509Certificate } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import { certificateIdentity, impersonationHeaders, reviewedIdentity } from "../../src/http/identity";
import { TestAuthority } from "../tls/test-authority";

let authority: TestAuthority;

beforeAll(async () => {
  authority = await TestAuthority.create();
});

async function identityOf({ CN, O }: { CN: string; O?: string }) {
  const { certificate } = await authority.user(CN, O);
  return certificateIdentity({ ...new X509Certificate(certificate).toLegacyObject(), fingerprint256: "AB:12" });
}

describe("a client certificate", () => {
  it("is the user of its common name, in the groups of its organizations", async () => {
    expect(await identityOf({ CN: "alice", O: "capsule.clastix.io" })).toEqual({
      username: "alice",
      groups: ["capsule.clastix.io", "system:authenticated"],
      extra: { "authentication.kubernetes.io/credential-id": ["X509SHA256=ab12"] },
    });
  });

  it("is the user in several groups, and no user with several common names or none", () => {
    const fingerprint256 = "AB:12";
    expect(certificateIdentity({ subject: { CN: "alice", O: ["a", "b"] }, fingerprint256 })?.groups).toEqual([
      ...["a", "b"],
      "system:authenticated",
    ]);
    for (const CN of [["alice", "root"], ""]) {
      expect(certificateIdentity({ subject: { CN }, fingerprint256 })).toBeUndefined();
    }
    expect(certificateIdentity({ subject: { O: "a" }, fingerprint256 })).toBeUndefined();
  });

  it("is no user that the API server calls anonymous", async () => {
    expect(await identityOf({ CN: "system:anonymous" })).toBeUndefined();
    expect(await identityOf({ CN: "alice", O: "system:unauthenticated" })).toBeUndefined();
  });
});

describe("a reviewed token", () => {
  it("is its user", () => {
    const user = { username: "alice", uid: "1", groups: ["a"], extra: { scopes: ["x"] } };
    expect(reviewedIdentity(user)).toEqual({
      username: "alice",
      uid: "1",
      groups: ["a", "system:authenticated"],
      extra: { scopes: ["x"] },
    });
  });

  it("is no user when it names none, or the anonymous one", () => {
    expect(reviewedIdentity({})).toBeUndefined();
    expect(reviewedIdentity({ username: "" })).toBeUndefined();
    expect(reviewedIdentity({ username: "system:anonymous", groups: ["system:unauthenticated"] })).toBeUndefined();
  });
});

describe("the headers by which a request is a user's", () => {
  it("name the user and all that is known of them", () => {
    const extra = { "authentication.kubernetes.io/pod-name": ["a", "b"], "Odd%Key": ["c"], empty: [] };
    expect(impersonationHeaders({ username: "alice", uid: "1", groups: ["a", "b"], extra })).toEqual({
      "impersonate-user": "alice",
      "impersonate-uid": "1",
      "impersonate-group": ["a", "b"],
      "impersonate-extra-authentication.kubernetes.io%2fpod-name": ["a", "b"],
      "impersonate-extra-%4fdd%25%4bey": ["c"],
    });
  });

  it("hold names of any script as UTF-8", () => {
    const headers = impersonationHeaders({ username: "Jürgen 李", groups: [], extra: {} });
    expect(Buffer.from(headers["impersonate-user"] as string, "latin1").toString("utf8")).toBe("Jürgen 李");
  });

  it.each(["", " alice", "alice ", "\talice", "alice\r\nImpersonate-Group: system:masters", "a\x00b", "a\x7f"])(
    "are not made for a name that would arrive as another: %j",
    (name) => {
      const refused = expect.objectContaining({ code: 403 });
      expect(() => impersonationHeaders({ username: name, groups: [], extra: {} })).toThrow(refused);
      expect(() => impersonationHeaders({ username: "alice", groups: [name], extra: {} })).toThrow(refused);
      expect(() => impersonationHeaders({ username: "alice", groups: [], extra: { a: [name] } })).toThrow(refused);
    },
  );
});

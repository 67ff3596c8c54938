import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { delimiter, join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { KubernetesClient } from "../../../providers/kubernetes/client";
import { impersonationHeaders, loadKubeconfig } from "../../../providers/kubernetes/kubeconfig";
import { testDirectory } from "../../directories";

const configOf = (user: object, server = "https://127.0.0.1:1") =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster: { server, "insecure-skip-tls-verify": server.startsWith("http:") } }],
    users: [
      { name: "other", user: { "as-groups": ["masters"] } },
      { name: "u", user: { token: "t", ...user } },
    ],
    contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
    "current-context": "x",
  });
const headersOf = (user: object) => impersonationHeaders(loadKubeconfig(configOf(user)).getCurrentUser());

describe("the impersonation of a kubeconfig", () => {
  it("is sent whole", async () => {
    const seen: unknown[] = [];
    const server = createServer(({ rawHeaders }, response) => {
      const pairs = rawHeaders.flatMap((name, index) => (index % 2 === 0 ? [[name, rawHeaders[index + 1]]] : []));
      seen.push(pairs.filter(([name]) => /^impersonate/i.test(name ?? "")).map(([name, value]) => `${name}: ${value}`));
      response.end("{}");
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const user = {
      as: "bob",
      "as-uid": "42",
      "as-groups": ["viewers", "editors"],
      "as-user-extra": { "example.com/scope": ["a", "b"], none: [] },
    };
    const { port } = server.address() as AddressInfo;
    const client = new KubernetesClient(loadKubeconfig(configOf(user, `http://127.0.0.1:${port}`)));

    await client.json("GET", "/version");
    await client.close();
    server.close();

    expect(seen).toEqual([
      [
        ...["Impersonate-User: bob", "Impersonate-Uid: 42"],
        ...["Impersonate-Group: viewers", "Impersonate-Group: editors"],
        ...["Impersonate-Extra-example.com%2Fscope: a", "Impersonate-Extra-example.com%2Fscope: b"],
      ],
    ]);
  });

  it("is none where the file names none", () => {
    expect(headersOf({ as: null, "as-groups": null, "as-user-extra": null })).toEqual({});
  });

  it.each([
    { "as-groups": ["viewers"] },
    { "as-uid": "42" },
    { "as-user-extra": { a: ["b"] } },
    { as: "", "as-uid": "1" },
  ])("is refused without a user: %j", (user) => {
    const refusal = /^the kubeconfig's user u has as-uid, as-groups .* without `as`/;
    expect(() => loadKubeconfig(configOf(user))).toThrow(refusal);
  });
});

it("the default kubeconfig may be several files, one of which has the user", async () => {
  const folder = testDirectory();
  const whole = JSON.parse(configOf({ as: "bob", "as-groups": ["viewers"] })) as Record<string, unknown>;
  const { users, ...others } = whole;
  await writeFile(join(folder, "a"), JSON.stringify(others));
  await writeFile(join(folder, "b"), JSON.stringify({ users }));
  vi.stubEnv("KUBECONFIG", [join(folder, "a"), join(folder, "b")].join(delimiter));
  const headers = impersonationHeaders(loadKubeconfig().getCurrentUser());
  vi.unstubAllEnvs();
  expect(headers).toEqual({ "Impersonate-User": "bob", "Impersonate-Group": ["viewers"] });
});

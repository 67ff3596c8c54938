import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { KubeConfig } from "@kubernetes/client-node";
import { afterEach, describe, expect, it } from "vitest";
import { KubernetesClient, known } from "../../../providers/kubernetes/client";

const V1 = "/apis/example.com/v1";
const ALPHA = "/apis/example.com/v1alpha1";
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGET = "namespaces/default/widgets/one";
const asked = { apiVersion: "example.com/v1alpha1", kind: "Widget", metadata: { name: "one", namespace: "default" } };
const metadata = { ...asked.metadata, uid: "u", resourceVersion: "1" };
const widget = { ...asked, apiVersion: "example.com/v1", metadata };

/** What a request is answered: a body, or a status without one. */
type Answers = Record<string, object | number>;

const groups = (...versions: string[]) => {
  const group = { name: "example.com", versions: versions.map((groupVersion) => ({ groupVersion })) };
  return { kind: "APIGroupList", groups: versions.length > 0 ? [group] : [] };
};
const resources = (...kinds: string[]) => ({
  resources: kinds.map((kind) => ({ name: `${kind.toLowerCase()}s`, kind, namespaced: true })),
});
const definitions = (...names: string[]) => ({ items: names.map((name) => ({ metadata: { name } })) });
const definition = (kind: string, ...served: string[]) => ({
  spec: { names: { kind }, versions: ["v1", "v1alpha1"].map((name) => ({ name, served: served.includes(name) })) },
});
const notFound = (name: string) => {
  return { kind: "Status", code: 404, reason: "NotFound", details: { name, kind: "widgets" } };
};
/** The CRD of a kind, by its name, which serves these versions. */
const crd = (kind: string, ...served: string[]) => {
  const name = `${kind.toLowerCase()}s.example.com`;
  return { [CRDS]: definitions(name), [`${CRDS}/${name}`]: definition(kind, ...served) };
};
/** A group that has another kind alone. */
const others = { "/apis": groups("example.com/v1"), [V1]: resources("Gadget") };
const forbidden = { code: 403, reason: "Forbidden" };

let server: Server | undefined;
let client: KubernetesClient;
afterEach(async () => {
  await client.close();
  server?.close();
});

async function serve(answers: Answers): Promise<void> {
  server = createServer((request, response) => {
    const answer = answers[(request.url ?? "").split("?")[0] ?? ""] ?? 404;
    const status = typeof answer === "number" ? answer : ((answer as { code?: number }).code ?? 200);
    response.writeHead(status, { "content-type": "application/json" });
    response.end(typeof answer === "number" ? `${status} page\n` : JSON.stringify(answer));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const config = new KubeConfig();
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  config.loadFromClusterAndUser({ name: "test", server: url, skipTLSVerify: true }, { name: "test", token: "one" });
  client = new KubernetesClient(config);
}

describe("an object", () => {
  const served = { [ALPHA]: resources("Widget"), "/apis": groups("example.com/v1alpha1") };

  it("is absent when the API server says so of this very object", async () => {
    await serve({ ...served, [`${ALPHA}/${WIDGET}`]: notFound("one") });
    expect(await client.find(asked)).toEqual({ outcome: "absent" });
  });

  it.each<[what: string, answer: object | number]>([
    ["an error", 500],
    ["a refusal", forbidden],
    ["the answer of something before the API server, which does not know the path", 404],
    ["the same in JSON", { code: 404, reason: "NotFound" }],
    ["that something else is absent", notFound("other")],
  ])("is unknown when the answer is %s", async (_, answer) => {
    await serve({ ...served, [`${ALPHA}/${WIDGET}`]: answer });
    expect(await client.find(asked)).toMatchObject({ outcome: "unknown", error: expect.any(Error) });
    await expect(known(client.find(asked))).rejects.toThrow();
  });

  it("is found in a version that is served, and deleted there", async () => {
    await serve({ "/apis": groups("example.com/v1"), [V1]: resources("Widget"), [`${V1}/${WIDGET}`]: widget });
    expect(await client.find(asked)).toEqual({ outcome: "found", object: widget });
  });

  it("is found in another version when discovery had its own a moment ago", async () => {
    const answers: Answers = { ...served, [`${ALPHA}/${WIDGET}`]: widget };
    await serve(answers);
    await known(client.find(asked));
    delete answers[`${ALPHA}/${WIDGET}`];
    delete answers[ALPHA];
    const moved = {
      "/apis": groups("example.com/v1"),
      [V1]: resources("Widget"),
      [`${V1}/${WIDGET}`]: notFound("one"),
    };
    Object.assign(answers, moved);
    expect(await client.find(asked)).toEqual({ outcome: "absent" });
  });

  it("is not deleted where its type is not served", async () => {
    await serve(served);
    await expect(client.delete(asked, "one", "default")).rejects.toMatchObject({ reason: "UnknownKind" });
  });
});

describe("an object of a type that no version serves", () => {
  it.each<[when: string, answers: Answers]>([
    ["neither its group nor its CRD exists", { "/apis": groups(), [CRDS]: definitions("gadgets.other.example.com") }],
    ["all that is left of its group is defined by other CRDs", { ...others, ...crd("Gadget", "v1") }],
  ])("is absent when %s", async (_, answers) => {
    await serve(answers);
    expect(await client.find(asked)).toEqual({ outcome: "absent" });
  });

  it.each<[when: string, answers: Answers, message: RegExp]>([
    ["its CRD exists and serves no version", { "/apis": groups(), ...crd("Widget") }, /exists and serves no version/],
    ["its CRD serves a version that is new", { "/apis": groups(), ...crd("Widget", "v1") }, /v1, which discovery does/],
    ["something else serves its group", { ...others, [CRDS]: definitions() }, /example\.com is served without it/],
    ["an extension of the API server is away", { "/apis": groups("example.com/v1"), [V1]: 503 }, /503/],
    ["discovery fails", { "/apis": 500 }, /500/],
    ["discovery answers something else", { "/apis": { groups: [] } }, /does not tell which groups/],
    ["CRDs may not be read", { "/apis": groups(), [CRDS]: forbidden }, /cannot be read/],
    ["CRDs cannot be read", { "/apis": groups(), [CRDS]: 500 }, /500/],
  ])("is unknown when %s", async (_, answers, message) => {
    await serve(answers);
    expect(await client.find(asked)).toEqual({ outcome: "unknown", error: expect.any(Error) });
    await expect(known(client.find(asked))).rejects.toThrow(message);
  });
});

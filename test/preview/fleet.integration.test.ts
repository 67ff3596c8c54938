import { createSecretKey } from "node:crypto";
import pino from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import { OBJECT_STUB } from "../../providers/kubernetes/object";
import { askOperator } from "../../src/cli/ask-operator";
import type { PortableResource } from "../../src/fleet/artefact";
import type { Listener } from "../../src/http/server";
import { installKinds } from "../../src/operator/install";
import type { Requests } from "../../src/preview/api";
import { startInspectionServer } from "../../src/preview/server";
import { kindName } from "../../stacks/contract/kind";
import { TestCluster } from "../providers/kubernetes/test-cluster";
import { TestAuthority } from "../tls/test-authority";
import { bundle, type Part } from "./bundle";
import { makeObject, openTestEngine } from "./engine";
import { previewerToken } from "./previewer-token";

/*
 * Declarations come from who can run any code: whoever has a token for previews tries to learn by them, or to do, what the
 * token does not allow.
 */

const KINDS = { apiGroups: [bundle.group], resources: [bundle.plural] };
const READ: object[] = [{ ...KINDS, verbs: ["get"] }];
const HELD = "held-by-the-state";

const cluster = TestCluster.use();
let stack: Awaited<ReturnType<typeof openTestEngine>>;
let authority: TestAuthority;
let server: Listener;
const tokens: Record<string, string> = {};
const objects: Record<string, LiveObject> = {};

beforeAll(async () => {
  await installKinds(cluster.client, [bundle]);
  stack = await openTestEngine();
  authority = await TestAuthority.create();
  tokens.reader = await tokenOf("reader", READ);
  tokens.seer = await tokenOf("seer", [
    ...READ,
    { apiGroups: [""], resources: ["configmaps", "secrets"], verbs: ["get"] },
  ]);
  tokens.stranger = await tokenOf("stranger", []);
  objects.own = await apply("own", [part("own-map", "ConfigMap"), part("own-secret", "Secret")]);
  objects.other = await apply("other", [part("others-map", "ConfigMap")]);
  const { certificate: cert, key } = await authority.server();
  const follow = (use: (context: { cert: string; key: string }) => void) => use({ cert, key });
  server = await startInspectionServer({
    port: 0,
    host: "127.0.0.1",
    tls: { follow, close: () => {} } as never,
    kinds: [bundle],
    client: cluster.client,
    engine: async () => stack.engine,
    planKey: async () => createSecretKey(Buffer.alloc(32)),
    logger: pino({ level: "silent" }),
    graceMs: 0,
  });
});
afterAll(async () => {
  await server.close();
  await stack.close();
});

const tokenOf = (name: string, rules: object[]) => previewerToken(cluster, name, rules);

const part = (at: string, type: Part["type"]): Part => ({
  ...{ resource: at, at, type, text: HELD, label: "x", immutable: false, replaces: false },
});

/** An object of the cluster, with its resources as its program made them. */
const apply = (name: string, parts: readonly Part[]) =>
  makeObject(stack.engine, cluster.client, bundle, {
    ...{ apiVersion: `${bundle.group}/v1`, kind: bundle.kind, spec: { parts } },
    metadata: { name, namespace: cluster.namespace },
  });

/** What a program is said to declare: an object of this name, with this text. */
function declared(
  at: string,
  text: string,
  changes: Partial<PortableResource> & { kind?: string } = {},
): PortableResource {
  const { kind = "ConfigMap", ...others } = changes;
  const manifest = {
    apiVersion: "v1",
    kind,
    metadata: { name: at, namespace: cluster.namespace, labels: { label: "x" } },
    data: { text: kind === "Secret" ? Buffer.from(text).toString("base64") : text },
  };
  const inputs = { manifest, owner: { uid: "invented", description: "invented" } };
  return { type: `pulumi-nodejs:dynamic/kubernetes:${kind}`, name: at, provider: OBJECT_STUB, inputs, ...others };
}

function elsewhere(namespace: string): PortableResource {
  const resource = declared("a", "x");
  const manifest = resource.inputs?.manifest as Manifest;
  return { ...resource, inputs: { ...resource.inputs, manifest: { ...manifest, metadata: { name: "a", namespace } } } };
}

type Said = Requests["/v1/fleet"]["objects"][number];

function said(resources: PortableResource[], changes: Partial<Said> = {}): Said {
  const { metadata } = objects.own as LiveObject;
  const { name, namespace, uid, generation = 0 } = metadata;
  const outcome = { type: "declared", resources } as const;
  return { kind: kindName(bundle), name, ...(namespace && { namespace }), uid, generation, outcome, ...changes };
}

function ask(token: string, objects: Said[], changes: Partial<Requests["/v1/fleet"]> = {}) {
  const options = {
    url: `https://127.0.0.1:${server.port}`,
    token: tokens[token] ?? "",
    ca: authority.own.certificate,
  };
  const request = { objects, providers: { [OBJECT_STUB]: 1 }, notFetched: [], refresh: false, ...changes };
  return askOperator(options, "/v1/fleet", request);
}
const planOf = async (...words: Parameters<typeof ask>) => (await ask(...words)).objects[0];

describe("declarations for an object whose resources the caller may not get", () => {
  it("tell nothing of what is there, whether they have its value or not", async () => {
    const guesses = ["another value", HELD].map((text) => [
      declared("own-map", text),
      declared("own-secret", text, { kind: "Secret" }),
    ]);
    const plans = [];
    for (const guess of guesses) plans.push(await planOf("reader", [said(guess)], { propose: true }));
    const [wrong, right] = plans;
    expect(right).toEqual(wrong);
    expect(right).toMatchObject({ action: "unchecked" });
    expect(right?.resources.map(({ operation, fields }) => [operation, fields])).toEqual([
      ["unchecked", []],
      ["unchecked", []],
    ]);
    expect(right?.digest).toBeUndefined();
    expect(JSON.stringify(right)).not.toContain(HELD);
  });

  it("tell nothing by a rename, by what is to stay, or by an alias either", async () => {
    const alias = (type: string, name: string) => ({ options: { aliases: [{ spec: { name, type } }] } });
    const attempts: PortableResource[][] = [
      [declared("own-map", "x", { name: "renamed" })],
      [declared("own-map", "x", { options: { ignoreChanges: ["manifest", "manifest.data"] } })],
      [
        declared("own-map", "x", {
          name: "aliased",
          ...alias("pulumi-nodejs:dynamic/kubernetes:ConfigMap", "own-map"),
        }),
      ],
      [declared("new-map", "x", alias("pulumi-nodejs:dynamic/kubernetes:Secret", "own-secret"))],
      [],
    ];
    for (const token of ["reader", "seer"]) {
      for (const attempt of attempts) {
        const text = JSON.stringify(await planOf(token, [said(attempt)], { refresh: true, propose: true }));
        expect(text).not.toContain(Buffer.from(HELD).toString("base64"));
        if (token === "reader") expect(text).not.toContain(HELD);
      }
    }
  });
});

describe("declarations of who may get what the object made", () => {
  it("are compared, but for Secrets, of which no caller learns by trying", async () => {
    const secret = (text: string) => declared("own-secret", text, { kind: "Secret" });
    const plan = await planOf("seer", [said([declared("own-map", "new"), secret(HELD)])]);
    expect(plan).toMatchObject({
      action: "unchecked",
      resources: [
        { name: "own-map", operation: "update", fields: [{ path: "data.text", before: HELD, after: "new" }] },
        { name: "own-secret", operation: "unchecked", fields: [] },
      ],
    });
    const other = await planOf("seer", [said([declared("own-map", "new"), secret("another")])]);
    expect(other).toEqual(plan);
  });

  it("have the digest of the plan that the operator would make, whoever they say that the owner is", async () => {
    await apply("plain", [part("plain-map", "ConfigMap")]);
    const live = (
      await cluster.client.list(
        { apiVersion: `${bundle.group}/v1`, kind: bundle.kind },
        { namespace: cluster.namespace },
      )
    ).items;
    const { metadata } = live.find(({ metadata }) => metadata.name === "plain") as LiveObject;
    const names = { name: "plain", uid: metadata.uid, generation: metadata.generation as number };
    const first = await planOf("seer", [said([declared("plain-map", "new")], names)], { propose: true });
    expect(first).toMatchObject({ action: "update", digest: expect.stringMatching(/^sha256:/) });
    const own = declared("plain-map", "new");
    own.inputs = { ...own.inputs, owner: { uid: metadata.uid, description: "anything" } };
    expect((await planOf("seer", [said([own], names)], { propose: true }))?.digest).toBe(first?.digest);
  });

  it("are a conflict where another object has it, also with the other's mark", async () => {
    const uid = objects.other?.metadata.uid ?? "";
    const marked = declared("others-map", HELD);
    const manifest = marked.inputs?.manifest as Manifest;
    manifest.metadata.labels = { "kindstack.dev/owner-uid": uid, label: "x" };
    manifest.metadata.annotations = { "kindstack.dev/created": "true" };
    for (const one of [declared("others-map", HELD), marked]) {
      expect(await planOf("seer", [said([one])])).toMatchObject({
        action: "failed",
        errors: expect.arrayContaining([expect.stringContaining("Conflict: ConfigMap others-map belongs to")]),
      });
    }
  });
});

describe("a request with declarations", () => {
  it("is refused without the right to get the objects, and names no other's", async () => {
    await expect(ask("stranger", [said([])])).rejects.toThrow("may not get bundles");
    const elsewhere = said([], { namespace: "default" });
    await expect(ask("seer", [elsewhere])).rejects.toThrow("in the namespace default");
    await expect(ask("seer", [], { notFetched: [kindName(bundle)] })).rejects.toThrow(
      "may not get customresourcedefinitions",
    );
  });

  it("has a limit of objects and of bytes, and names each object once", async () => {
    const many = Array.from({ length: 501 }, (_, n) => said([], { name: `n${n}` }));
    await expect(ask("seer", many)).rejects.toThrow("500 objects at most");
    const wide = Array.from({ length: 4 }, (_, n) => said(Array(1_500).fill(declared("a", "x")), { name: `n${n}` }));
    await expect(ask("seer", wide)).rejects.toThrow("5000 resources at most");
    const long = said([declared("own-map", "x".repeat(5 * 2 ** 20))]);
    await expect(ask("seer", [long])).rejects.toThrow("at most 4194304 bytes");
    await expect(ask("seer", [said([]), said([])])).rejects.toThrow("is there twice");
    await expect(ask("seer", [said([], { name: "../../secrets/own-secret" })])).rejects.toThrow("the body is not");
  });

  it.each<[string, () => PortableResource[]]>([
    ["parents in a circle", () => [declared("a", "x", { parent: 1 }), declared("b", "x", { parent: 0 })]],
    ["a parent that is not there", () => [declared("a", "x", { parent: 1999 })]],
    ["an object in another namespace", () => [elsewhere("kube-system")]],
  ])("has no answer but that for %s, and the engine takes the next one", async (_what, resources) => {
    expect(await planOf("seer", [said(resources())])).toMatchObject({
      action: "unchecked",
      resources: [],
      errors: [expect.stringContaining("its declarations are not previewed")],
    });
    expect(await planOf("seer", [said([declared("own-map", "y")])])).toMatchObject({ resources: { length: 2 } });
  });

  it("names what is not installed and what is gone, as unchecked", async () => {
    const report = await ask("seer", [
      said([], { kind: "others.example.com" }),
      said([], { name: "gone" }),
      said([], { generation: 99 }),
    ]);
    expect(report.unchecked).toEqual(["1 objects of others.example.com, which is not installed"]);
    expect(report.objects.map(({ action, errors }) => [action, errors])).toEqual([
      ["unchecked", ["it was deleted after it was fetched"]],
      ["unchecked", ["it has changed since it was fetched"]],
    ]);
    expect(report.notes.join()).toContain("no proof");
  });
});

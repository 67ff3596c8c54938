import { createSecretKey } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import { OBJECT_STUB } from "../../providers/kubernetes/object";
import { askOperator } from "../../src/cli/ask-operator";
import type { PortableResource } from "../../src/fleet/artefact";
import { installKinds } from "../../src/operator/install";
import type { Requests } from "../../src/preview/api";
import { kindName } from "../../stacks/contract/kind";
import { TestCluster } from "../providers/kubernetes/test-cluster";
import { bundle, type Part, part } from "./bundle";
import { makeObject, openTestEngine, serveInspections } from "./engine";
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
let server: Awaited<ReturnType<typeof serveInspections>>;
const tokens: Record<string, string> = {};
const objects: Record<string, LiveObject> = {};

beforeAll(async () => {
  await installKinds(cluster.client, [bundle]);
  stack = await openTestEngine();
  const seen = { apiGroups: [""], resources: ["configmaps", "secrets"], verbs: ["get"] };
  tokens.reader = await previewerToken(cluster, "reader", READ);
  tokens.seer = await previewerToken(cluster, "seer", [...READ, seen]);
  tokens.stranger = await previewerToken(cluster, "stranger", []);
  objects.own = await apply("own", [held("own-map"), held("own-secret", { type: "Secret" })]);
  objects.other = await apply("other", [held("others-map")]);
  server = await serveInspections({
    client: cluster.client,
    engine: async () => stack.engine,
    planKey: async () => createSecretKey(Buffer.alloc(32)),
  });
  return async () => {
    await server.close();
    await stack.close();
  };
});

const held = (at: string, changes: Partial<Part> = {}) => part(at, { text: HELD, ...changes });

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
  const request = { objects, providers: { [OBJECT_STUB]: 1 }, notFetched: [], refresh: false, ...changes };
  return askOperator({ ...server.address, token: tokens[token] ?? "" }, "/v1/fleet", request);
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
    const unseen = { operation: "unchecked", fields: [] };
    expect(right).toMatchObject({ action: "unchecked", resources: [unseen, unseen] });
    expect(right?.digest).toBeUndefined();
    expect(JSON.stringify(right)).not.toContain(HELD);
  });

  it("tell nothing by a rename, by what is to stay, or by an alias either", async () => {
    const alias = (kind: string, name: string) => {
      return { options: { aliases: [{ spec: { name, type: `pulumi-nodejs:dynamic/kubernetes:${kind}` } }] } };
    };
    const attempts: PortableResource[][] = [
      [declared("own-map", "x", { name: "renamed" })],
      [declared("own-map", "x", { options: { ignoreChanges: ["manifest", "manifest.data"] } })],
      [declared("own-map", "x", { name: "aliased", ...alias("ConfigMap", "own-map") })],
      [declared("new-map", "x", alias("Secret", "own-secret"))],
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
    const { metadata } = await apply("plain", [held("plain-map")]);
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
      const plan = await planOf("seer", [said([one])]);
      expect(plan?.action).toBe("failed");
      expect(plan?.errors.join()).toContain("Conflict: ConfigMap others-map belongs to");
    }
  });
});

describe("a request with declarations", () => {
  it("is refused without the right to get the objects, and names no other's", async () => {
    await expect(ask("stranger", [said([])])).rejects.toThrow("may not get bundles");
    const elsewhere = said([], { namespace: "default" });
    await expect(ask("seer", [elsewhere])).rejects.toThrow("in the namespace default");
    const notFetched = [kindName(bundle)];
    await expect(ask("seer", [], { notFetched })).rejects.toThrow("may not get customresourcedefinitions");
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
    const changes = [{ kind: "others.example.com" }, { name: "gone" }, { generation: 99 }];
    const report = await ask(
      "seer",
      changes.map((change) => said([], change)),
    );
    expect(report.unchecked).toEqual(["1 objects of others.example.com, which is not installed"]);
    expect(report.objects.map(({ action, errors }) => [action, errors])).toEqual([
      ["unchecked", ["it was deleted after it was fetched"]],
      ["unchecked", ["it has changed since it was fetched"]],
    ]);
    expect(report.notes.join()).toContain("no proof");
  });
});

import { createSecretKey } from "node:crypto";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { StackEngine } from "../../src/automation/engine";
import { askOperator } from "../../src/cli/ask-operator";
import { renderMarkdown } from "../../src/cli/render-markdown";
import { renderText } from "../../src/cli/render-text";
import { installKinds } from "../../src/operator/install";
import type { InspectionServerOptions } from "../../src/preview/server";
import { eventually } from "../../src/testing/eventually";
import { kindName } from "../../stacks/contract/kind";
import { TestCluster } from "../providers/kubernetes/test-cluster";
import { roleFor } from "../rights";
import { bundle, part } from "./bundle";
import { openTestEngine, serveInspections } from "./engine";
import { previewerToken } from "./previewer-token";

const KINDS = { apiGroups: [bundle.group], resources: [bundle.plural] };
const CONFIG_MAPS = { apiGroups: [""], resources: ["configmaps"] };

const PROCESS = {
  ...{ name: "vault", version: "1.0.0", pid: 42, startedAt: "2026-01-01T00:00:00Z" },
  ...{ updates: 2, inUse: 1, memoryBytes: 1, state: "used" },
};

const cluster = TestCluster.use();
let stack: Awaited<ReturnType<typeof openTestEngine>>;
const tokens: Record<string, string> = {};

beforeAll(async () => {
  await installKinds(cluster.client, [bundle]);
  stack = await openTestEngine();
  const written = { ...KINDS, verbs: ["get", "create", "patch"] };
  tokens.reader = await tokenOf("reader", [{ ...KINDS, verbs: ["get"] }]);
  tokens.writer = await tokenOf("writer", [written]);
  tokens.maker = await tokenOf("maker", [written, { ...CONFIG_MAPS, verbs: ["create", "patch"] }]);
  return () => stack.close();
});

const tokenOf = (name: string, rules: object[]) => previewerToken(cluster, name, rules);

type Server = Awaited<ReturnType<typeof serveInspections>>;

/** @param preview in place of the engine's own */
function serve(
  preview: StackEngine["preview"] = (...words) => stack.engine.preview(...words),
  options: Partial<InspectionServerOptions> = {},
): Promise<Server> {
  const exportStack: StackEngine["exportStack"] = (...words) => stack.engine.exportStack(...words);
  const engine = async () => ({ preview, exportStack }) as StackEngine;
  return serveInspections({ client: cluster.client, engine, plugins: { list: async () => [PROCESS] }, ...options });
}
const withKey = (byte = 0) => serve(undefined, { planKey: async () => createSecretKey(Buffer.alloc(32, byte)) });

const asked = part("asked", { resource: "r" });

function ask({ address }: Server, token = "", { metadata = {}, parts = [asked], propose = false } = {}) {
  const manifest = {
    apiVersion: `${bundle.group}/v1`,
    kind: "Bundle",
    metadata: { name: "asked", namespace: cluster.namespace, ...metadata },
    spec: { parts },
  };
  const manifests = { objects: [{ file: "f", manifest }], problems: [] };
  return askOperator({ ...address, token }, "/v1/preview", {
    manifests,
    namespace: "default",
    refresh: false,
    propose,
  });
}

describe("the rights behind a preview by the operator", () => {
  let server: Server;
  beforeEach(async () => {
    server = await serve();
  });
  afterEach(() => server.close());

  it("are the author's, not the operator's, also for the object itself", async () => {
    const [plan] = (await ask(server, tokens.reader)).objects;

    expect(plan).toMatchObject({
      action: "create",
      validatedBy: "schema",
      notes: [],
      notValidated: expect.stringMatching(/no right: .*:reader" cannot patch resource "bundles"/),
      resources: [{ notChecked: expect.stringMatching(/no right: .*:reader" cannot patch resource "configmaps"/) }],
    });
  });

  it("tell an author no more than the API server would", async () => {
    const metadata = { labels: { "no label": "at all" } };
    const [unseen] = (await ask(server, tokens.reader, { metadata })).objects;
    const [seen] = (await ask(server, tokens.writer, { metadata })).objects;

    expect(unseen).toMatchObject({ action: "create", errors: [] });
    expect(seen).toMatchObject({ action: "invalid", validatedBy: "server", errors: [expect.stringMatching("label")] });
  });

  it("are looked at for each resource: one that may write the object need not may what its program makes", async () => {
    const [writers] = (await ask(server, tokens.writer)).objects;
    const [makers] = (await ask(server, tokens.maker)).objects;

    expect(writers).toMatchObject({ validatedBy: "server", resources: [{ notChecked: expect.anything() }] });
    expect(makers).toMatchObject({ validatedBy: "server", resources: [{ checked: true }] });
  });
});

describe("what others have set in an object that would be adopted", () => {
  let server: Server;
  const parts = [{ ...asked, at: "theirs" }];
  beforeAll(async () => {
    await cluster.client.create(cluster.configMap("theirs", { text: "--db-password=hunter2" }));
    tokens.seer = await tokenOf(
      "seer",
      [KINDS, CONFIG_MAPS].map((rule) => ({ ...rule, verbs: ["get"] })),
    );
  });
  beforeEach(async () => {
    server = await withKey();
  });
  afterEach(() => server.close());

  it.each(["reader", "writer", "maker"])("is not shown to those who may not get it: %s", async (name) => {
    const report = await ask(server, tokens[name], { parts });
    expect(report.objects[0]?.resources).toMatchObject([{ operation: "adopt", fields: [], hidden: true }]);
    for (const text of [JSON.stringify(report), renderText(report), renderMarkdown(report)]) {
      expect(text).not.toContain("hunter2");
    }
    expect(renderText(report)).toContain("you have no right to get them: ConfigMap r");
  });

  it("is shown to those who may, and has the same digest for all", async () => {
    const [seen] = (await ask(server, tokens.seer, { parts, propose: true })).objects;
    const [unseen] = (await ask(server, tokens.reader, { parts, propose: true })).objects;
    const field = { path: "data.text", before: "--db-password=hunter2", after: "1" };
    expect(seen?.resources[0]?.fields).toContainEqual(field);
    expect(unseen?.digest).toBe(seen?.digest);
  });
});

it("the digests of plans are the operator's, of what the author may preview, and only where they are asked for", async () => {
  await using server = await withKey();
  await using other = await withKey(1);
  await using without = await serve();
  const digest = async (of: Server, token?: string, changes = {}) =>
    (await ask(of, token, { propose: true, ...changes })).objects[0]?.digest;
  const readers = await digest(server, tokens.reader);
  expect(readers).toMatch(/^sha256:[0-9a-f]{64}$/);
  expect(await digest(server, tokens.maker)).toBe(readers); // dry runs have no part in it
  expect(await digest(server, tokens.reader, { parts: [{ ...asked, text: "2" }] })).not.toBe(readers);
  expect(await digest(other, tokens.reader)).not.toBe(readers);
  expect((await ask(server, tokens.reader)).objects[0]?.digest).toBeUndefined();
  await expect(digest(without, tokens.reader)).rejects.toThrow("need the passphrase of the operator's state");
});

it("the processes of plugins are shown to those who may list them, and to no others", async () => {
  await using server = await serve();
  const listed = () => askOperator({ ...server.address, token: tokens.writer ?? "" }, "/v1/plugins", {});
  await expect(listed()).rejects.toThrow("may not list plugins.kindstack.dev in all namespaces");
  const writer = { kind: "ServiceAccount", name: "writer", namespace: cluster.namespace };
  const rules = [{ apiGroups: ["kindstack.dev"], resources: ["plugins"], verbs: ["list"] }];
  for (const manifest of roleFor([writer], rules, { name: `plugins-of-${cluster.namespace}` })) {
    await cluster.client.create(manifest);
  }
  const expected = { kinds: [{ kind: kindName(bundle) }], processes: [PROCESS] };
  await eventually(async () => expect(await listed()).toMatchObject(expected));
});

describe("an operator that stops", () => {
  /** A server, and an answer of it that is under way until `release`. */
  async function askSlowly(graceMs: number) {
    const [begun, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const preview: StackEngine["preview"] = async (...words) => {
      begun.resolve();
      await released.promise;
      return stack.engine.preview(...words);
    };
    const server = await serve(preview, { graceMs });
    const answer = ask(server, tokens.reader).catch((error: Error) => error);
    await begun.promise;
    return { server, answer, release: released.resolve };
  }

  it("lets the preview end that it works on, and takes no other", async () => {
    const { server, answer, release } = await askSlowly(3_600_000);
    const closed = server.close();
    await expect
      .poll(() => ask(server, tokens.reader).catch((error: Error) => error.message))
      .toMatch(/the operator stops|ECONNREFUSED/);
    release();

    expect(await answer).toMatchObject({ objects: [{ action: "create" }] });
    await closed; // it waits for nothing else
  });

  it("ends it when its time is over", async () => {
    const { server, answer, release } = await askSlowly(50);
    await server.close();
    expect(await answer).toMatchObject({ reason: "Unreachable" });
    release();
  });
});

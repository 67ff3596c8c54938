import { createSecretKey } from "node:crypto";
import pino from "pino";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { StackEngine } from "../../src/automation/engine";
import { askOperator } from "../../src/cli/ask-operator";
import { renderMarkdown } from "../../src/cli/render-markdown";
import { renderText } from "../../src/cli/render-text";
import type { Listener } from "../../src/http/server";
import { installKinds } from "../../src/operator/install";
import { type InspectionServerOptions, startInspectionServer } from "../../src/preview/server";
import { eventually } from "../../src/testing/eventually";
import { kindName } from "../../stacks/contract/kind";
import { TestCluster } from "../providers/kubernetes/test-cluster";
import { roleFor } from "../rights";
import { TestAuthority } from "../tls/test-authority";
import { bundle, type Part } from "./bundle";
import { openTestEngine } from "./engine";
import { previewerToken } from "./previewer-token";

const KINDS = { apiGroups: [bundle.group], resources: [bundle.plural] };

const PROCESS = {
  ...{ name: "vault", version: "1.0.0", pid: 42, startedAt: "2026-01-01T00:00:00Z" },
  ...{ updates: 2, inUse: 1, memoryBytes: 1, state: "used" },
};

const cluster = TestCluster.use();
let stack: Awaited<ReturnType<typeof openTestEngine>>;
let authority: TestAuthority;
const tokens: Record<string, string> = {};

beforeAll(async () => {
  await installKinds(cluster.client, [bundle]);
  stack = await openTestEngine();
  authority = await TestAuthority.create();
  tokens.reader = await tokenOf("reader", [{ ...KINDS, verbs: ["get"] }]);
  tokens.writer = await tokenOf("writer", [{ ...KINDS, verbs: ["get", "create", "patch"] }]);
  tokens.maker = await tokenOf("maker", [
    { ...KINDS, verbs: ["get", "create", "patch"] },
    { apiGroups: [""], resources: ["configmaps"], verbs: ["create", "patch"] },
  ]);
  return () => stack.close();
});

const tokenOf = (name: string, rules: object[]) => previewerToken(cluster, name, rules);

/** @param preview in place of the engine's own */
async function serve(
  preview: StackEngine["preview"] = (...words) => stack.engine.preview(...words),
  graceMs = 0,
  planKey: InspectionServerOptions["planKey"] = undefined,
): Promise<Listener> {
  const { certificate: cert, key } = await authority.server();
  const follow = (use: (context: { cert: string; key: string }) => void) => use({ cert, key });
  return startInspectionServer({
    port: 0,
    host: "127.0.0.1",
    tls: { follow, close: () => {} } as never,
    kinds: [bundle],
    client: cluster.client,
    engine: async () => ({ preview, exportStack: (...words) => stack.engine.exportStack(...words) }) as StackEngine,
    plugins: { list: async () => [PROCESS] },
    planKey,
    logger: pino({ level: "silent" }),
    graceMs,
  });
}

const part: Part = {
  resource: "r",
  at: "asked",
  type: "ConfigMap",
  text: "1",
  label: "x",
  immutable: false,
  replaces: false,
};

function ask({ port }: Listener, token: string | undefined, { metadata = {}, parts = [part], propose = false } = {}) {
  const manifest = {
    apiVersion: `${bundle.group}/v1`,
    kind: "Bundle",
    metadata: { name: "asked", namespace: cluster.namespace, ...metadata },
    spec: { parts },
  };
  const options = { url: `https://127.0.0.1:${port}`, token: token ?? "", ca: authority.own.certificate };
  const manifests = { objects: [{ file: "f", manifest }], problems: [] };
  return askOperator(options, "/v1/preview", { manifests, namespace: "default", refresh: false, propose });
}

describe("the rights behind a preview by the operator", () => {
  let server: Listener;
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
  let server: Listener;
  const parts = [{ ...part, at: "theirs" }];
  beforeAll(async () => {
    await cluster.client.create(cluster.configMap("theirs", { text: "--db-password=hunter2" }));
    tokens.seer = await tokenOf("seer", [
      { ...KINDS, verbs: ["get"] },
      { apiGroups: [""], resources: ["configmaps"], verbs: ["get"] },
    ]);
  });
  beforeEach(async () => {
    server = await serve(undefined, 0, async () => createSecretKey(Buffer.alloc(32)));
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
    expect(seen?.resources[0]?.fields).toContainEqual({
      path: "data.text",
      before: "--db-password=hunter2",
      after: "1",
    });
    expect(unseen?.digest).toBe(seen?.digest);
  });
});

it("the digests of plans are the operator's, of what the author may preview, and only where they are asked for", async () => {
  const server = await serve(undefined, 0, async () => createSecretKey(Buffer.alloc(32)));
  const other = await serve(undefined, 0, async () => createSecretKey(Buffer.alloc(32, 1)));
  const without = await serve();
  try {
    const digest = async (listener: Listener, token?: string, changes = {}) =>
      (await ask(listener, token, { propose: true, ...changes })).objects[0]?.digest;
    const readers = await digest(server, tokens.reader);
    expect(readers).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(await digest(server, tokens.maker)).toBe(readers); // dry runs have no part in it
    expect(await digest(server, tokens.reader, { parts: [{ ...part, text: "2" }] })).not.toBe(readers);
    expect(await digest(other, tokens.reader)).not.toBe(readers);
    expect((await ask(server, tokens.reader)).objects[0]?.digest).toBeUndefined();
    await expect(digest(without, tokens.reader)).rejects.toThrow("need the passphrase of the operator's state");
  } finally {
    for (const listener of [server, other, without]) await listener.close();
  }
});

it("the processes of plugins are shown to those who may list them, and to no others", async () => {
  const server = await serve();
  const options = { url: `https://127.0.0.1:${server.port}`, ca: authority.own.certificate };
  const asked = () => askOperator({ ...options, token: tokens.writer ?? "" }, "/v1/plugins", {});
  try {
    await expect(asked()).rejects.toThrow("may not list plugins.kindstack.dev in all namespaces");
    const writer = { kind: "ServiceAccount", name: "writer", namespace: cluster.namespace };
    const rules = [{ apiGroups: ["kindstack.dev"], resources: ["plugins"], verbs: ["list"] }];
    for (const manifest of roleFor([writer], rules, { name: `plugins-of-${cluster.namespace}` })) {
      await cluster.client.create(manifest);
    }
    await eventually(async () =>
      expect(await asked()).toMatchObject({ kinds: [{ kind: kindName(bundle) }], processes: [PROCESS] }),
    );
  } finally {
    await server.close();
  }
});

describe("an operator that stops", () => {
  /** A server, and an answer of it that is under way until `release`. */
  async function askSlowly(graceMs: number) {
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    let begin = () => {};
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const preview: StackEngine["preview"] = async (...words) => {
      begin();
      await released;
      return stack.engine.preview(...words);
    };
    const server = await serve(preview, graceMs);
    const answer = ask(server, tokens.reader).catch((error: Error) => error);
    await begun;
    return { server, answer, release };
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

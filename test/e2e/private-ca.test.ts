import fs from "node:fs";
import https from "node:https";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Manifest, ResourceType } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { findCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import { controlPlane } from "../control-plane";
import { useDirectory } from "../directories";
import { OWNER, queryServer, type Server, Servers } from "../providers/postgres/servers";
import { TestAuthority } from "../tls/test-authority";
import { mountedBundle } from "./ca-bundle";
import { removeUntilGone, untilGone, untilReady } from "./conditions";
import { postgresWriter, uniqueName } from "./manifests";
import { apply, get, remove } from "./objects";
import { kindstack, TestOperator, useReplicas } from "./operator";

/*
 * Servers whose certificates are of a private CA: PostgreSQL with the state and the rows of PostgresWriters, and HTTPS that a
 * kind of one's own asks. The operator has the environment that the key `caBundle` gives it in an installation.
 */

const ROOT = path.resolve(__dirname, "../..");
const directory = useDirectory();
const folder = path.join(directory, "asks");
const group = `${uniqueName("asks")}.example.com`;
const ASK: ResourceType = { apiVersion: `${group}/v1`, kind: "Ask", plural: "asks", namespaced: true };
const operators = useReplicas();
let servers: Servers;
let database: Server;
let web: https.Server;
let bundle: Record<string, string>;

const MODULE = `
const { defineKind, defineProvider, DynamicResource, Type } = require("kindstack");
const { stub, provider } = defineProvider("ask", {
  check: async (_, inputs) => ({ inputs, failures: [] }),
  diff: async () => ({ changes: false }),
  async create({ url }) {
    const answer = await fetch(url);
    return { id: url, outs: { url, answer: await answer.text() } };
  },
  read: async (id, props) => ({ id, props }),
  update: async (_, __, news) => ({ outs: news }),
  delete: async () => {},
  release: async () => {},
});
class Answer extends DynamicResource {
  constructor(name, inputs) { super({ module: "ask", name: "Answer", stub }, name, inputs); }
}
exports.ask = defineKind({
  group: ${JSON.stringify(group)}, version: "v1", kind: "Ask", plural: "asks", singular: "ask", scope: "Namespaced",
  description: "", columns: [], owns: [], directory: __dirname, spec: Type.Object({ url: Type.String() }),
  status: Type.Object({}), report: () => ({}), program: async ({ spec: { url } }) => void new Answer("answer", { url }),
  capabilities: { providers: [{ stub, provider }] },
});
`;

beforeAll(async () => {
  const authority = await TestAuthority.create();
  const certified = await authority.server();
  bundle = await mountedBundle(authority.own.certificate, path.join(directory, "ca"));
  servers = await Servers.open();
  database = await servers.start(certified);
  await queryServer(database, "postgres", "CREATE DATABASE state");
  await queryServer(
    database,
    "postgres",
    "CREATE TABLE students (id text PRIMARY KEY, name text, age integer, country text)",
  );
  web = https.createServer({ cert: certified.certificate, key: certified.key }, (_, answer) => answer.end("hello"));
  await new Promise<void>((resolve) => web.listen(0, "127.0.0.1", resolve));
  fs.mkdirSync(folder);
  fs.symlinkSync(path.join(ROOT, "node_modules"), path.join(directory, "node_modules"));
  fs.writeFileSync(path.join(folder, "index.js"), MODULE);
});
afterAll(async () => {
  web.close();
  await servers[Symbol.asyncDispose]();
});

/** The backend is verified, and so is the database. */
const settings = () => ({
  PULUMI_BACKEND_URL: `postgres://${OWNER}@127.0.0.1:${database.port}/state?sslmode=verify-full`,
  PSQL_HOST: "127.0.0.1",
  PSQL_PORT: String(database.port),
  PSQL_DBNAME: "postgres",
  PSQL_USER: OWNER,
  PGSSLMODE: "verify-full",
});
const operatorWith = (env: Record<string, string>) => {
  const operator = new TestOperator({ args: ["--kinds", `postgreswriters,${folder}`], env });
  operators.push(operator);
  return operator;
};
const ask = () => ({
  apiVersion: ASK.apiVersion,
  kind: ASK.kind,
  metadata: { name: uniqueName("ask"), namespace: "default" },
  spec: { url: `https://127.0.0.1:${(web.address() as AddressInfo).port}/` },
});
const row = () => postgresWriter(uniqueName("row"), { table: "students", name: "a", age: 1, country: "b" });
const synced = async (object: Manifest) => findCondition(statusOf(await get(object)).conditions, "Synced");
const untrusted = (reason: string) => ({
  status: "False",
  reason,
  message: expect.stringMatching(/certificate.*: the key caBundle of the installation/),
});

it("gives Node.js and Go what they need", async () => {
  expect(Object.keys(bundle).sort()).toEqual(["NODE_EXTRA_CA_CERTS", "SSL_CERT_DIR"]);
});

it("lets rows and packages of kinds reach their servers, which say what is missing without it", async () => {
  const operator = operatorWith({ ...settings(), PULUMI_BACKEND_URL: `file://${directory}` });
  const [written, asked] = [row(), ask()];
  await operator.start();
  for (const object of [written, asked]) await apply(object);
  await eventually(async () => {
    expect(await synced(written)).toMatchObject(untrusted("TlsFailed"));
    expect(await synced(asked)).toMatchObject(untrusted("InternalError"));
  });

  await operator.restart({ env: bundle });

  for (const object of [written, asked]) await untilReady(object);
  expect(await queryServer(database, "postgres", "SELECT name FROM students")).toEqual([{ name: "a" }]);
  for (const object of [written, asked]) await remove(object);
  for (const object of [written, asked]) await untilGone(object);
  await operator.stop();
});

it("lets the engine and commands reach the state", async () => {
  const operator = operatorWith(settings());
  const written = row();
  const history = (env: Record<string, string>) =>
    kindstack(["history", "postgreswriters", written.metadata.name ?? ""], {
      ...controlPlane().env,
      ...settings(),
      ...env,
    });
  await operator.start();
  await apply(written);
  await eventually(async () => expect(await synced(written)).toMatchObject(untrusted("Unreadable")));
  expect(() => history({})).toThrow("the key caBundle of the installation");

  await operator.restart({ env: bundle });

  await untilReady(written);
  expect(history(bundle)).toContain("create");
  expect(await queryServer(database, "state", "SELECT 1 FROM pulumi_state LIMIT 1")).toHaveLength(1);
  await removeUntilGone(written);
  await operator.stop();
});

import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import {
  type KubernetesClient,
  known,
  type LiveObject,
  type Manifest,
  type ResourceType,
} from "../../providers/kubernetes/client";
import { API_SERVER_TOOLS, adminClient, startApiServer } from "../../src/dev/control-plane";
import { layoutOf } from "../../src/dev/layout";
import { readRecord, Supervisor, stopRecorded } from "../../src/dev/supervisor";
import { eventually } from "../../src/testing/eventually";
import { resolveBinaries } from "../../src/toolchain/resolve";
import { findCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import { controlPlane } from "../control-plane";
import { useDirectory } from "../directories";
import { CONFIG_MAP, POSTGRES_WRITER, postgresWriter, ROLE_BINDING, TENANT, tenant } from "../e2e/manifests";
import { TestOperator } from "../e2e/operator";
import { TestDatabase } from "../providers/postgres/database";

/*
 * The data of an API server is replaced by an older copy while an operator runs: its versions and generations go back, and
 * then come again with other contents. The API server is this file's own.
 */

const directory = useDirectory();
const layout = layoutOf(directory);
const copy = `${layout.etcd}.copy`;
const table = "students";
const writer = postgresWriter("writer", { table, country: "ca" });
const owner = tenant("owner", { namespaces: ["owner-a"] });

let database: TestDatabase;
let client: KubernetesClient;
let operator: TestOperator;

beforeAll(async () => {
  fs.mkdirSync(layout.logs);
  database = new TestDatabase(controlPlane().env);
  await database.open();
  await database.query(`CREATE TABLE ${table} (id text PRIMARY KEY, name text, age int, country text)`);
  await serve();
  client = adminClient(layout.kubeconfig);
  const kinds = ["--kinds", "postgreswriters,tenants.multitenancy.codereliant.io"];
  operator = new TestOperator({ args: kinds, env: { KUBECONFIG: layout.kubeconfig, PSQL_DBNAME: database.name } });
  await operator.start();
});
afterEach(({ task }) => {
  if (task.result?.state === "fail") console.log(`The operator's log:\n${operator.log}`);
});
afterAll(async () => {
  await operator.dispose();
  await client.close();
  await stopRecorded(layout, () => {});
  await database.close();
});

it("goes on with the objects as they are after a restore of etcd, whatever it remembers of them", async () => {
  await apply(writer);
  await apply(owner);
  await Promise.all([untilSynced(POSTGRES_WRITER, "writer"), untilSynced(TENANT, "owner")]);
  copyEtcd();

  // So many versions are missing after the restore that the operator sees the API server before it comes up to them.
  for (let index = 0; index < 300; index++) await client.create(configMap(`filler-${index}`));
  await edit(POSTGRES_WRITER, "writer", { spec: { country: "us" } });
  await edit(TENANT, "owner", { spec: { namespaces: ["owner-a", "owner-b"] } });
  await apply(postgresWriter("later", { table, country: "de" }));
  await Promise.all([
    ...["writer", "later"].map((name) => untilSynced(POSTGRES_WRITER, name)),
    untilSynced(TENANT, "owner"),
  ]);
  expect(await countries()).toEqual({ writer: "us", later: "de" });

  await stopRecorded(layout, () => {});
  fs.rmSync(layout.etcd, { recursive: true });
  fs.renameSync(copy, layout.etcd);
  await serve();
  // It is ready before it serves the types of all CRDs.
  await eventually(() => Promise.all([get(POSTGRES_WRITER, "writer"), get(TENANT, "owner")]));

  expect((await get(POSTGRES_WRITER, "writer")).spec).toMatchObject({ country: "ca" });
  await eventually(async () => expect((await countries()).writer).toBe("ca"));

  // The same generations as before, with other specs.
  await edit(POSTGRES_WRITER, "writer", { spec: { country: "fr" } });
  await edit(TENANT, "owner", { spec: { namespaces: ["owner-a", "owner-c"] } });
  await apply(postgresWriter("new", { table, country: "it" }));
  await Promise.all([
    ...["writer", "new"].map((name) => untilSynced(POSTGRES_WRITER, name)),
    untilSynced(TENANT, "owner"),
  ]);
  // A status of that generation may be of the spec that is lost: what was made tells.
  const made = () => bindings("owner-c");
  await eventually(async () => {
    expect(await countries()).toEqual({ writer: "fr", later: "de", new: "it" });
    expect(await made()).toEqual(["owner-c-admin-rb", "owner-c-edit-rb"]);
  });

  // What is changed from outside is seen as well.
  const names = await made();
  for (const name of names) await client.delete(ROLE_BINDING, name, "owner-c");
  await eventually(async () => expect(await made()).toEqual(names));
  expect(operator.log).toContain("the data of the API server was restored from a backup");
  expect((await operator.get("/readyz")).status).toBe(200);
});

/** Starts etcd and the API server with what is stored. */
async function serve(): Promise<void> {
  const binaries = await resolveBinaries(API_SERVER_TOOLS);
  await startApiServer(new Supervisor(layout, new AbortController().signal), binaries, () => {});
}

/** As a backup of a disk at one moment has it. */
function copyEtcd(): void {
  const etcd = readRecord(layout)?.find(({ name }) => name === "etcd");
  if (etcd === undefined) throw new Error("etcd does not run");
  process.kill(etcd.pid, "SIGSTOP");
  execFileSync("cp", ["-a", layout.etcd, copy]);
  process.kill(etcd.pid, "SIGCONT");
}

function configMap(name: string): Manifest {
  return { ...CONFIG_MAP, metadata: { name, namespace: "default" } };
}

async function apply(manifest: Manifest): Promise<void> {
  await client.apply(manifest, { fieldManager: "someone" });
}

async function edit(type: ResourceType, name: string, patch: object): Promise<void> {
  await client.mergePatch(type, name, type.namespaced ? "default" : undefined, patch);
}

async function get(type: ResourceType, name: string): Promise<LiveObject> {
  const object = await known(client.get(type, name, type.namespaced ? "default" : undefined));
  if (object === undefined) throw new Error(`there is no ${type.kind} ${name}`);
  return object;
}

function untilSynced(type: ResourceType, name: string): Promise<void> {
  return eventually(async () => {
    const object = await get(type, name);
    const expected = { status: "True", observedGeneration: object.metadata.generation };
    expect(findCondition(statusOf(object).conditions, "Synced")).toMatchObject(expected);
  });
}

/** The names of a namespace's RoleBindings. */
async function bindings(namespace: string): Promise<string[]> {
  const { items } = await client.list(ROLE_BINDING, { namespace });
  return items.map(({ metadata }) => metadata.name).sort();
}

/** By the name of the object. */
async function countries(): Promise<Record<string, string>> {
  const rows = await database.query(`SELECT id, country FROM ${table}`);
  return Object.fromEntries(rows.map(({ id, country }) => [String(id).split("/")[1], String(country)]));
}

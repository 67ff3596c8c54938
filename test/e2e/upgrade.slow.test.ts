import fs from "node:fs";
import path from "node:path";
import { execa } from "execa";
import { beforeAll, expect, it } from "vitest";
import { eventually } from "../../src/testing/eventually";
import { useDirectory } from "../directories";
import { useDatabase } from "../providers/postgres/database";
import { untilGone, untilReady } from "./conditions";
import { capsuleTenant, memcached, podSet, postgresWriter, tenant, uniqueName } from "./manifests";
import { apply, client, edit, get, remove } from "./objects";
import { TestOperator, useReplicas } from "./operator";

/*
 * Objects of every kind are made by the packed package of the last release; then the package of this clone takes over. The
 * last release is the newest tag, and the last commit while there is none.
 */

const ROOT = path.resolve(__dirname, "../..");
const home = useDirectory();
const database = useDatabase();
const replicas = useReplicas();
const CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podsets.batch.tutorial.kubebuilder.io";
let released: string;
let table: string;
let objects: ReturnType<typeof tenant>[];

beforeAll(async () => {
  released = await installLastRelease();
  table = await database.createStudents();
  const name = uniqueName("upgraded");
  objects = [
    tenant(name),
    capsuleTenant(`${name}-capsule`),
    postgresWriter(name, { table }),
    podSet(name, 2),
    memcached(name),
  ];
}, 600_000);

it("updates nothing that need not be, upgrades the CRDs, and goes on with every object", async () => {
  const operator = new TestOperator({ env: { PSQL_DBNAME: database.name } });
  replicas.push(operator);
  await operator.start({ main: released });
  for (const object of objects) await apply(object);
  for (const object of objects) await untilReady(object);
  await operator.stop();
  const before = await versions();
  const removed = [{ op: "remove", path: "/spec/versions/0/additionalPrinterColumns" }];
  await client.json("PATCH", CRD, { contentType: "application/json-patch+json", body: removed });

  await operator.start();
  await eventually(async () => {
    expect(await operator.metric("controller_runtime_reconcile_total")).toBeGreaterThanOrEqual(objects.length);
    expect(await operator.metric("controller_runtime_active_workers")).toBe(0);
  });
  expect(await operator.metric("kindstack_updates_total")).toBe(0);
  expect(await versions()).toEqual(before);
  expect(await client.json("GET", CRD)).toHaveProperty("spec.versions.0.additionalPrinterColumns");

  const [, , writer, pods] = objects;
  if (writer === undefined || pods === undefined) throw new Error("there are no such objects");
  await edit(writer, { spec: { age: 24 } });
  await edit(pods, { spec: { replicas: 1 } });
  for (const object of objects) await untilReady(object);
  expect((await database.query(`SELECT age FROM ${table}`)) as object[]).toEqual([{ age: 24 }]);
  for (const object of objects) await remove(object);
  for (const object of objects) await untilGone(object);
});

async function versions(): Promise<(string | undefined)[]> {
  return Promise.all(objects.map(async (object) => (await get(object)).metadata.resourceVersion));
}

/** @returns its command */
async function installLastRelease(): Promise<string> {
  const git = async (...words: string[]) => (await execa("git", words, { cwd: ROOT, reject: false })).stdout;
  const release = (await git("describe", "--tags", "--abbrev=0", "--match", "v*.*.*", "HEAD^")) || "HEAD";
  const [clone, packed, project] = ["clone", "packed", "project"].map((name) => path.join(home, name)) as [
    string,
    string,
    string,
  ];
  await execa("git", ["worktree", "add", "--detach", clone, release], { cwd: ROOT });
  try {
    const isSame = (await git("diff", "--name-only", release, "--", "package-lock.json")) === "";
    if (isSame) fs.symlinkSync(path.join(ROOT, "node_modules"), path.join(clone, "node_modules"));
    else await execa("npm", ["ci", "--ignore-scripts"], { cwd: clone });
    await execa("npm", ["run", "build"], { cwd: clone });
    const platform = `${process.platform}-${process.arch}`;
    await execa(process.execPath, ["tools/release.mjs", packed, "--platforms", platform], { cwd: clone });
  } finally {
    await git("worktree", "remove", "--force", clone);
  }
  fs.mkdirSync(project);
  fs.writeFileSync(path.join(project, "package.json"), "{}");
  const archives = fs.readdirSync(packed).filter((file) => file.endsWith(".tgz") && !file.includes("chart"));
  const paths = archives.map((file) => path.join(packed, file));
  await execa("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", ...paths], { cwd: project });
  return path.join(project, "node_modules/kindstack/dist/src/cli/main.js");
}

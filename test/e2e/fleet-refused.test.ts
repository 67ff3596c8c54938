import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Manifest } from "../../providers/kubernetes/client";
import type { Declarations, Fleet } from "../../src/fleet/artefact";
import type { ObjectPlan, Report } from "../../src/preview/report";
import { useDirectory } from "../directories";
import { useDatabase } from "../providers/postgres/database";
import { removeUntilGone, untilGone, untilReady } from "./conditions";
import { POSTGRES_WRITER, postgresWriter, uniqueName } from "./manifests";
import { client, create, get, remove } from "./objects";
import { MAIN, useOperator } from "./operator";
import { makeAccount, previewsAt, usePreviewCertificate, writeKubeconfig } from "./previewer";

/*
 * The three steps of a fleet's preview where something is wrong: with the files between them, which strangers may have written,
 * with the rights of who runs them, or with the objects in the meantime.
 */

const directory = useDirectory();
const at = (name: string) => path.join(directory, name);
const [FLEET, DECLARED, REPORT] = [at("fleet.json"), at("declared.json"), at("report.json")];
const [namespace, other] = [uniqueName("refused"), uniqueName("refused-other")];
const database = useDatabase();
const previews = usePreviewCertificate(directory);
const operator = useOperator({
  args: ["--kinds", "postgreswriters", ...previews.args],
  env: { PSQL_DBNAME: database.name, KINDSTACK_POSTGRES_TABLES: "students" },
});

const KIND = { apiGroups: ["demo.yash.com"], resources: ["postgreswriters"] };
const RULES = [
  { apiGroups: ["kindstack.dev"], resources: ["previews"], verbs: ["create"] },
  { ...KIND, verbs: ["get", "list"] },
  { apiGroups: ["apiextensions.k8s.io"], resources: ["customresourcedefinitions"], verbs: ["get"] },
];
const writers = ["one", "two", "three"].map((name) => postgresWriter(name, {}, namespace));
const elsewhere = postgresWriter("away", {}, other);

beforeAll(async () => {
  await database.query(
    "CREATE TABLE IF NOT EXISTS students (id text PRIMARY KEY, name text, age integer, country text)",
  );
  await database.query("CREATE TABLE salaries (id text PRIMARY KEY, name text, age integer, country text)");
  for (const name of [namespace, other])
    await client.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
  for (const writer of [...writers, elsewhere]) await create(writer);
  for (const writer of [...writers, elsewhere]) await untilReady(writer);
  fs.writeFileSync(at("token"), await makeAccount(namespace, "previewer", RULES));
  writeKubeconfig(at("kubeconfig"), fs.readFileSync(at("token"), "utf8"));
});
afterAll(async () => {
  for (const writer of [...writers, elsewhere]) await remove(writer);
  for (const writer of [...writers, elsewhere]) await untilGone(writer);
  for (const name of [namespace, other]) await client.delete({ apiVersion: "v1", kind: "Namespace" }, name);
});

/** A command as a user has it: the exit code, and what is printed. */
function run(words: string[], { input, ...env }: Record<string, string> = {}) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, "fleet", ...words], {
    encoding: "utf8",
    env: { ...process.env, KUBECONFIG: at("none"), NO_COLOR: "1", ...env },
    ...(input !== undefined && { input }),
  });
  return { status, stdout, stderr };
}
const fetchFleet = (words = ["-n", namespace], kubeconfig = at("kubeconfig")) =>
  run(["fetch", "--kinds", "postgreswriters", ...words, "--to", FLEET], { KUBECONFIG: kubeconfig });
const runPrograms = () => run(["run", FLEET, "--kinds", "postgreswriters", "--to", DECLARED]);
const submit = (words: string[] = [], token = at("token")) =>
  run(
    [
      "submit",
      FLEET,
      DECLARED,
      "--server",
      previewsAt(operator),
      "--server-ca",
      previews.ca,
      "--token-file",
      token,
    ].concat(["--fail-on", "delete", "--report", REPORT, ...words]),
  );
const readJson = <T>(file: string) => JSON.parse(fs.readFileSync(file, "utf8")) as T;
const planOf = (name: string) =>
  readJson<Report>(REPORT).objects.find((plan) => plan.name === name) ?? ({} as Partial<ObjectPlan>);

/** What the program of `one` is said to declare instead. */
function declare(
  change: (resources: Extract<Declarations["objects"][number]["outcome"], { type: "declared" }>["resources"]) => void,
) {
  expect([fetchFleet().status, runPrograms().status]).toEqual([0, 0]);
  const declarations = readJson<Declarations>(DECLARED);
  const outcome = declarations.objects.find(({ name }) => name === "one")?.outcome;
  if (outcome?.type !== "declared") throw new Error("nothing is declared");
  change(outcome.resources);
  fs.writeFileSync(DECLARED, JSON.stringify(declarations));
}
type Row = { table: string; key: object; owner: { uid: string; description: string } };

describe("declarations that no program of the installed kind makes", () => {
  it("are previewed where nothing was changed", () => {
    declare(() => {});
    expect(submit().status).toBe(0);
    expect(["one", "two", "three"].map((name) => planOf(name).action)).toEqual(["none", "none", "none"]);
  });

  it("name a table that the operator does not allow: the object fails, and the table is not looked at", async () => {
    await database.query("INSERT INTO salaries VALUES ('x', 'secret', 1, 'a')");
    declare((resources) => {
      for (const { inputs } of resources) Object.assign(inputs as object, { table: "salaries", key: { id: "x" } });
    });
    const { status, stdout } = submit();
    expect(status).toBe(1);
    expect(stdout).toContain('table "salaries" is not allowed: KINDSTACK_POSTGRES_TABLES allows students');
    expect(planOf("one").action).toBe("failed");
    expect(fs.readFileSync(REPORT, "utf8")).not.toContain("secret");
    expect(planOf("two").action).toBe("none");
  });

  it("are said to be another object's: the owner is the object of which they are told, so what another one has is a conflict", () => {
    const uid = readJson<Fleet>(FLEET).kinds[0]?.objects.find(({ metadata }) => metadata.name === "two")?.metadata.uid;
    declare((resources) => {
      for (const { inputs } of resources) {
        const row = inputs as unknown as Row;
        Object.assign(row, { key: { id: `${namespace}/two` }, owner: { ...row.owner, uid } });
      }
    });
    expect(submit().status).toBe(1);
    expect(planOf("one")).toMatchObject({ action: "failed", errors: [expect.stringMatching(/two/)] });
  });

  it("are larger than a request, or more than an object may have: no other object's are left out", () => {
    declare(([row]) => Object.assign(row?.inputs?.values as object, { name: "x".repeat(5 * 2 ** 20) }));
    expect(submit().status).toBe(1);
    expect(planOf("one")).toMatchObject({
      action: "unchecked",
      errors: ["its declarations are larger than a request may be"],
    });
    expect(planOf("two").action).toBe("none");
    declare((resources) => resources.push(...Array(2_000).fill(resources[0])));
    const { status, stderr } = submit();
    expect([status, stderr]).toEqual([
      1,
      expect.stringContaining("is not what kindstack fleet run of this version writes"),
    ]);
  });
});

describe("a file between the steps", () => {
  it.each([
    ["is missing", undefined, /fleet\.json cannot be read: ENOENT.*`kindstack fleet fetch --to .*` writes it/],
    ["is cut off", (text: string) => text.slice(0, 300), /it is no JSON, or not all of it/],
    [
      "is of another step",
      () => fs.readFileSync(DECLARED, "utf8"),
      /is not what kindstack fleet fetch of this version/,
    ],
  ])("%s: the next step says so, and writes nothing", (_what, edit, message) => {
    declare(() => {});
    const text = edit?.(fs.readFileSync(FLEET, "utf8"));
    if (text === undefined) fs.rmSync(FLEET);
    else fs.writeFileSync(FLEET, text);
    fs.rmSync(at("out.json"), { force: true });
    const { status, stderr } = run(["run", FLEET, "--kinds", "postgreswriters", "--to", at("out.json")]);
    expect([status, stderr]).toEqual([1, expect.stringMatching(message)]);
    expect(fs.existsSync(at("out.json"))).toBe(false);
    expect(submit().status).toBe(1);
  });

  it("may be a pipe, and one that cannot be written loses no report", () => {
    const fetched = run(["fetch", "--kinds", "postgreswriters", "-n", namespace, "--to", "-"], {
      KUBECONFIG: at("kubeconfig"),
    });
    const ran = run(["run", "-", "--kinds", "postgreswriters", "--to", "-"], { input: fetched.stdout });
    expect([fetched.stderr, ran.stderr]).toEqual(["3 objects of 1 kind\n", "3 declared\n"]);
    expect((JSON.parse(ran.stdout) as Declarations).objects).toHaveLength(3);
    declare(() => {});
    const { status, stdout, stderr } = submit(["--report", at("none/report.json")]);
    expect([status, stdout]).toEqual([1, expect.stringContaining("3 unchanged")]);
    expect(stderr).toContain("none/report.json cannot be written");
  });

  it("is of other kinds than the programs: each is named, and a gate fails", () => {
    expect(fetchFleet().status).toBe(0);
    expect(run(["run", FLEET, "--kinds", "podsets", "--to", DECLARED])).toMatchObject({
      status: 0,
      stdout: "no objects\n",
    });
    const { status, stdout } = submit();
    expect(status).toBe(1);
    expect(stdout).toContain("its program was not run");
    expect(run(["run", FLEET, "--kinds", at("nowhere"), "--to", DECLARED])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("there is no "),
    });
  });
});

describe("who takes the steps", () => {
  it("has no rights in one namespace, and none at all: what could not be listed is said, and a gate fails", async () => {
    const [, ...rules] = RULES;
    writeKubeconfig(at("narrow"), await makeAccount(namespace, "narrow", rules, [namespace]));
    const definitions = RULES.slice(2);
    const fetched = fetchFleet([], at("narrow"));
    expect(fetched.stderr).toMatch(/nothing could be fetched:.*customresourcedefinitions/);
    expect(fetched.status).toBe(1);
    expect(fetchFleet([], at("none"))).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("the kubeconfig cannot be read"),
    });
    writeKubeconfig(at("lists-nothing"), await makeAccount(namespace, "lists-nothing", definitions));
    const unlisted = fetchFleet([], at("lists-nothing"));
    expect(unlisted).toMatchObject({ status: 0, stderr: expect.stringMatching(/^unchecked: .*could not be listed/) });
    expect(runPrograms().status).toBe(0);
    const { status, stdout } = submit();
    expect([status, stdout]).toEqual([1, expect.stringContaining("could not be listed")]);
  });

  it("may get objects in another namespace alone, or has a token that is no longer valid: the operator refuses by name", async () => {
    expect(fetchFleet([]).status).toBe(0);
    expect(runPrograms().status).toBe(0);
    const narrow = await makeAccount(namespace, "within", RULES, [namespace]);
    fs.writeFileSync(at("within"), narrow);
    expect(submit([], at("within"))).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(new RegExp(`within may not .* in the namespace ${other}`)),
    });
    await client.delete({ apiVersion: "v1", kind: "ServiceAccount" }, "within", namespace);
    fs.writeFileSync(at("forged"), `${narrow.slice(0, -4)}AAAA`);
    expect(submit([], at("forged"))).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("does not know the token"),
    });
  });
});

it("the objects, between the steps, are changed, deleted and created: the first two are unchecked, and the report says of when it is", async () => {
  const gone: Manifest = postgresWriter("gone", {}, namespace);
  await create(gone);
  await untilReady(gone);
  declare(() => {});
  await removeUntilGone(gone);
  await client.mergePatch(POSTGRES_WRITER, "two", namespace, { spec: { age: 24 } });
  expect((await get(writers[1] as Manifest)).spec).toMatchObject({ age: 24 });
  const { status, stdout } = submit();
  expect(status).toBe(1);
  expect([planOf("gone"), planOf("two")]).toMatchObject([
    { action: "unchecked", errors: [expect.stringContaining("it was deleted after it was fetched")] },
    { action: "unchecked", errors: ["it has changed since it was fetched"] },
  ]);
  expect(stdout).toContain(`objects that were created after ${readJson<Fleet>(FLEET).at} are not in this report`);
});

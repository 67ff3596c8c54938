import { escapeIdentifier } from "pg";
import { beforeAll, describe, expect, it } from "vitest";
import type { Manifest } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { RECONCILE_ANNOTATION } from "../../stacks/contract/annotations";
import { findCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import type { PostgresWriterSpec } from "../../stacks/kinds/postgres-writer/schema";
import { useDatabase } from "../providers/postgres/database";
import { RESERVED } from "../reserved";
import { applyUntilReady, removeUntilGone, untilCondition, untilGone, untilReady } from "./conditions";
import {
  deploymentOf,
  memcached,
  namespace,
  podSet,
  postgresWriter,
  ROLE_BINDING,
  tenant,
  uniqueName,
} from "./manifests";
import { apply, client, create, edit, eventsAbout, find, get, remove } from "./objects";
import { useOperator } from "./operator";

const database = useDatabase();
const operator = useOperator({ args: ["--concurrency", "8"], env: { PSQL_DBNAME: database.name } });

const SQL = "x'); DROP TABLE victims; --";
/** Clears a terminal, links, turns the direction of a text, and is Markdown and HTML. */
const TERMINAL = "\u001b[2J\u001b]8;;http://x\u0007\u009b2J\u202e <!-- <b> [a](http://x) @team | ` \\";
/** Ends a line and a paragraph in Unicode, but not in JSON. */
const SEPARATORS = "\u2028\u2029";
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const HARMFUL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/;

beforeAll(async () => {
  await database.query("CREATE TABLE victims (id text PRIMARY KEY)");
  await database.query("INSERT INTO victims VALUES ('safe')");
});
/** Nothing was dropped, and the operator does the next thing that it is asked for. */
async function allIsWell(): Promise<void> {
  expect(await database.query("SELECT id FROM victims")).toEqual([{ id: "safe" }]);
  const table = await database.createStudents();
  const next = postgresWriter(uniqueName("next"), { table });
  await applyUntilReady(next);
}

describe("a PostgresWriter", () => {
  const tables = [`a"b'; DROP TABLE victims; --`, "Größe 表 🇨🇦", "select", "x".repeat(63), " "];

  it.each(tables)("may write a table that is called %j", async (table) => {
    await database.query(
      `CREATE TABLE ${escapeIdentifier(table)} (id text PRIMARY KEY, name text, age integer, country text)`,
    );
    const values = { name: `${SQL}${SEPARATORS}`, age: 2147483647, country: TERMINAL };
    const writer = postgresWriter(uniqueName("hostile"), { table, ...values });
    const ready = await applyUntilReady(writer);
    const rows = await database.query(`SELECT name, age, country FROM ${escapeIdentifier(table)}`);
    expect(rows).toEqual([values]);
    expect(JSON.stringify(statusOf(ready).conditions)).not.toMatch(HARMFUL);

    await removeUntilGone(writer);
    expect(await database.query(`SELECT * FROM ${escapeIdentifier(table)}`)).toEqual([]);
  });

  it("writes literally what Pulumi's engine takes for a value that is not known", async () => {
    const table = await database.createStudents();
    const writers = RESERVED.map((text, age) =>
      postgresWriter(uniqueName("reserved"), { table, name: text, age, country: text }),
    );
    await Promise.all(writers.map(apply));
    await Promise.all(writers.map(untilReady));
    const rows = RESERVED.map((text, age) => ({ name: text, age, country: text }));
    expect(await database.query(`SELECT name, age, country FROM ${table} ORDER BY age`)).toEqual(rows);

    const [first, second = ""] = RESERVED;
    const [writer] = writers as [Manifest];
    await edit(writer, { spec: { name: second }, metadata: { annotations: { [RECONCILE_ANNOTATION]: "1" } } });
    await eventually(async () => expect((await get(writer)).status).toMatchObject({ lastHandledReconcile: "1" }));
    await untilReady(writer);
    const [row] = await database.query(`SELECT name, country FROM ${table} WHERE age = 0`);
    expect(row).toEqual({ name: second, country: first });
  });

  it.each<[string, Partial<PostgresWriterSpec>, string, string]>([
    ["a table of SQL that does not exist", { table: SQL }, "Ready", "TableMissing"],
    ["a table whose name has effects on terminals", { table: TERMINAL.slice(0, 40) }, "Ready", "TableMissing"],
    ["a table of more than 63 bytes", { table: "é".repeat(40) }, "Stalled", "InvalidTable"],
  ])("of %s is told so, without effect on a terminal, and nothing is written", async (_, spec, type, reason) => {
    const writer = postgresWriter(uniqueName("hostile"), spec);
    await apply(writer);
    const told = await untilCondition(writer, type, type === "Ready" ? "False" : "True", reason);
    for (const { message } of statusOf(told).conditions ?? []) expect(message).not.toMatch(HARMFUL);
    const events = await eventually(async () => {
      const all = await eventsAbout(told);
      expect(all).not.toEqual([]);
      return all;
    });
    for (const { note } of events) expect(note).not.toMatch(HARMFUL);
    await removeUntilGone(writer);
  });

  it.each<[string, Partial<PostgresWriterSpec>]>([
    ["a name of a mebibyte", { name: "x".repeat(2 ** 20) }],
    ["a country of a mebibyte", { country: "é".repeat(2 ** 19) }],
    ["a table of a mebibyte", { table: "x".repeat(2 ** 20) }],
    ["an age beyond all integers", { age: 1e300 }],
    ["an age below all integers", { age: -2147483649 }],
    ["NUL", { name: "a\0b" }],
  ])("with %s is refused by the API server", async (_, spec) => {
    const writer = postgresWriter(uniqueName("hostile"), spec);
    await expect(create(writer)).rejects.toMatchObject({ status: 422 });
    expect(await find(writer)).toBeUndefined();
  });
});

it("a Tenant may name a group that separates lines elsewhere, and disturbs no other update", async () => {
  const name = uniqueName("separated");
  const group = `before${SEPARATORS}after`;
  await applyUntilReady(tenant(name, { adminGroups: [group] }));
  const { items } = await client.list(ROLE_BINDING, { namespace: name });
  expect(items.flatMap((binding) => (binding as { subjects?: object[] }).subjects)).toContainEqual(
    expect.objectContaining({ kind: "Group", name: group }),
  );
  expect(operator.log).not.toContain("killing Pulumi's engine");
});

it("objects that are called as Pulumi's engine calls a value that is not known make their resources, under that name", async () => {
  const name = RESERVED[2] as string;
  const objects: Manifest[] = [
    podSet(name, 1),
    memcached(name),
    tenant(uniqueName("reserved"), { namespaces: [name] }),
  ];
  await Promise.all(objects.map(apply));
  await Promise.all(objects.map(untilReady));
  expect(await find(namespace(name))).toHaveProperty("metadata.uid");
  expect(await find(deploymentOf(memcached(name)))).toHaveProperty("metadata.uid");
  await Promise.all(objects.map(remove));
  await Promise.all(objects.map(untilGone));
  expect(await find(deploymentOf(memcached(name)))).toBeUndefined();
});

it("objects with names as long as Kubernetes lets them be that differ only at the end have stacks of their own, and do not touch each other's", async () => {
  const table = await database.createStudents();
  const base = `${uniqueName("long")}.${"x".repeat(253)}`.slice(0, 252);
  const writers = ["a", "b"].map((last, age) => postgresWriter(base + last, { table, age }));
  const team = tenant(base.slice(0, 250), { namespaces: [`${uniqueName("n")}-${"x".repeat(63)}`.slice(0, 63)] });
  const pods = podSet(`${uniqueName("pods")}-${"x".repeat(63)}`.slice(0, 63), 1);
  const all: Manifest[] = [...writers, team, pods];
  for (const object of all) await apply(object);
  await Promise.all(all.map(untilReady));
  expect(await database.query(`SELECT age FROM ${table} ORDER BY id`)).toEqual([{ age: 0 }, { age: 1 }]);

  await removeUntilGone(writers[0] as Manifest);
  expect(await database.query(`SELECT age FROM ${table}`)).toEqual([{ age: 1 }]);
  expect(findCondition(statusOf(await get(writers[1] as Manifest)).conditions, "Ready")?.status).toBe("True");
  const { namespaces } = team.spec as { namespaces: string[] };
  expect(await find(namespace(namespaces[0] ?? ""))).toHaveProperty("metadata.uid");
});

it("after all that, nothing was lost, the operator continues, and its log has no effect on a terminal", async () => {
  await allIsWell();
  expect(operator.log).not.toMatch(HARMFUL);
  expect(operator.log).not.toContain('"level":"error"');
});

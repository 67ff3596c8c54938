import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Manifest } from "../../providers/kubernetes/client";
import type { Report } from "../../src/preview/report";
import { eventually } from "../../src/testing/eventually";
import { statusOf } from "../../stacks/contract/kind";
import { MODE_ANNOTATION } from "../../stacks/contract/mode";
import { PLAN_TYPE, type Plan } from "../../stacks/contract/plan";
import { controlPlane } from "../control-plane";
import { useDatabase } from "../providers/postgres/database";
import { conditionOf, untilSynced } from "./conditions";
import { postgresWriter, uniqueName } from "./manifests";
import { apply, client, edit, get, requestUpdate } from "./objects";
import { kindstack, useOperator } from "./operator";

/* Rows that are there before the object whose plan waits: a plan tells whether it would have them. */

const database = useDatabase();
beforeAll(() => database.query("CREATE TABLE students (id text PRIMARY KEY, name text, age integer, country text)"));
const operator = useOperator({ env: { PSQL_DBNAME: database.name } });
const writers: Manifest[] = [];
afterAll(async () => {
  for (const writer of writers) await edit(writer, { metadata: { annotations: { [MODE_ANNOTATION]: null } } });
});

/** A writer whose changes wait, of a row that others made. */
async function proposedWriter(): Promise<Manifest> {
  const writer = postgresWriter(uniqueName("row"), { table: "students", name: "alex", age: 1, country: "canada" });
  const { metadata } = writer;
  await database.query("INSERT INTO students VALUES ($1, 'eve', 9, 'peru')", [`default/${metadata.name}`]);
  const proposed = { ...writer, metadata: { ...metadata, annotations: { [MODE_ANNOTATION]: "Propose" } } };
  writers.push(proposed);
  return proposed;
}

/** Its plan that waits, of another digest than the former one. */
const untilPlanned = (writer: Manifest, former?: string) =>
  eventually(async () => {
    const { items } = await client.list(PLAN_TYPE, { namespace: "default" });
    const plan = (items as Plan[]).find(({ spec }) => spec.object.name === writer.metadata.name);
    const { reason, message } = conditionOf(await get(writer), "Synced");
    if (
      plan === undefined ||
      plan.spec.digest === former ||
      reason !== "WaitsForApproval" ||
      !message.includes(plan.spec.digest)
    ) {
      throw new Error(`nothing new waits: ${reason}: ${message}`);
    }
    return { plan, message };
  });

const rowOf = async ({ metadata: { name } }: Manifest) =>
  (await database.query("SELECT name FROM students WHERE id = $1", [`default/${name}`]))[0];

const environment = () => ({
  ...controlPlane().env,
  PULUMI_BACKEND_URL: `file://${operator.stateDirectory}`,
  PSQL_DBNAME: database.name,
});

/** What a preview tells of it. */
function preview(writer: Manifest): Report["objects"][0] | undefined {
  const [file, report] = ["writer.json", "report.json"].map((name) => path.join(operator.directory, name)) as [
    string,
    string,
  ];
  fs.writeFileSync(file, JSON.stringify(writer));
  try {
    kindstack(["preview", "-f", file, "--propose", "--report", report], environment());
  } catch {} // a preview of what would fail ends with 1
  return (JSON.parse(fs.readFileSync(report, "utf8")) as Report).objects[0];
}

it("a plan tells that a row of no object is refused, as a preview does, and takes it once an administrator lets it", async () => {
  const writer = await proposedWriter();
  await apply(writer);
  const { plan, message } = await untilPlanned(writer);
  const refusal = plan.spec.steps[0]?.refusal ?? "";

  expect(plan.spec.steps).toMatchObject([{ action: "adopt", type: "Row" }]);
  expect(refusal).toMatch(/^RowConflict: row "default\/.*" of table public\.students belongs to no object/);
  expect(message).toContain(`it would fail: ${refusal}`);
  expect(kindstack(["plan", "postgreswriters", writer.metadata.name ?? "", "-n", "default"])).toContain(
    `error: ${refusal}`,
  );
  expect(preview(writer)).toMatchObject({ action: "failed", errors: [refusal] });

  // As an administrator does, here in a database without records.
  const sql = refusal.slice(refusal.indexOf("CREATE SCHEMA"));
  for (const statement of sql.split("; ")) await database.query(statement);
  await requestUpdate(writer, "now");
  const { plan: adopting } = await untilPlanned(writer, plan.spec.digest);
  expect(adopting.spec.steps).toMatchObject([{ action: "adopt", type: "Row" }]);
  expect(adopting.spec.steps[0]?.refusal).toBeUndefined();
  expect(preview(writer)).toMatchObject({ errors: [], digest: adopting.spec.digest });
  expect(await rowOf(writer)).toEqual({ name: "eve" });

  kindstack([
    "approve",
    "postgreswriters",
    writer.metadata.name ?? "",
    "-n",
    "default",
    "--digest",
    adopting.spec.digest,
  ]);
  const object = await untilSynced(writer);
  expect(statusOf(object).stack?.approval?.digest).toBe(adopting.spec.digest);
  expect(await rowOf(writer)).toEqual({ name: "alex" });
});

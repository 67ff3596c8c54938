import { describe, expect, it } from "vitest";
import { eventually } from "../../src/testing/eventually";
import { FINALIZER } from "../../stacks/contract/object";
import { controlPlane } from "../control-plane";
import { filesUnder, readIfThere } from "../files";
import { STUDENTS, useDatabase } from "../providers/postgres/database";
import { conditionOf, conditionTypes, untilCondition, untilGone, untilReady } from "./conditions";
import { postgresWriter, uniqueName } from "./manifests";
import { apply, create, eventsAbout, get, remove } from "./objects";
import { useOperator } from "./operator";

const database = useDatabase();
const operator = useOperator({
  args: ["--concurrency", "8", "--drift-interval", "1"],
  env: { PSQL_DBNAME: database.name },
});

it("60 objects whose table is missing are tried by one of them, and are Ready once it is made", async () => {
  const table = uniqueName("late").replace("-", "_");
  const names = Array.from({ length: 60 }, (_, index) => `${table.replace("_", "-")}-${index}`);
  const controller = "postgreswriters.demo.yash.com";
  const updates = () => operator.updates({ kind: controller });
  const reconciles = () => operator.metric("controller_runtime_reconcile_total", { controller });
  const [before, reconcilesBefore] = [await updates(), await reconciles()];
  await Promise.all(names.map((name) => create(postgresWriter(name, { table }))));
  const last = postgresWriter(names.at(-1) ?? "", { table });
  for (const name of names) await untilCondition(postgresWriter(name, { table }), "Ready", "False", "TableMissing");
  expect((await reconciles()) - reconcilesBefore).toBeLessThan(1.5 * names.length);
  const told = await updates();
  expect(told - before).toBeLessThanOrEqual(names.length + 12);
  await eventually(async () => expect(await updates()).toBeGreaterThanOrEqual(told + 2));
  const tried = await updates();
  expect(tried - told).toBeLessThanOrEqual(3);

  await database.query(`CREATE TABLE ${table} (${STUDENTS})`);
  await eventually(async () => {
    expect(await database.query(`SELECT count(*)::int AS rows FROM ${table}`)).toEqual([{ rows: names.length }]);
  });
  await untilReady(last);
  expect((await updates()) - tried).toBeLessThanOrEqual(names.length + 3);
  await Promise.all(names.map((name) => remove(postgresWriter(name, { table }))));
  for (const name of names) await untilGone(postgresWriter(name, { table }));
});

/* Each test finds what the one before has left: a start of the operator takes seconds. */
describe("a database that is away", () => {
  const table = uniqueName("away").replace("-", "_");
  const writer = (name: string) => postgresWriter(uniqueName(name), { table });
  const [leaving, waiting] = [writer("leaving"), writer("waiting")];
  const [refused, resting] = [writer("refused"), writer("resting")];
  const wrongPassword = "a-wrong-password-that-must-not-show";

  it("is said to be so", async () => {
    await database.query(`CREATE TABLE ${table} (${STUDENTS})`);
    await operator.restart();
    await Promise.all([apply(leaving), apply(resting)]);
    await Promise.all([untilReady(leaving), untilReady(resting)]);

    await operator.restart({ env: { PSQL_PORT: "1" } }); // which nothing listens at, as a free one may become another's
    await Promise.all([apply(waiting), remove(leaving)]);
    const unreachable = await untilCondition(waiting, "Ready", "False", "ConnectionRefused");
    expect(conditionOf(unreachable, "Ready").message).toContain("ECONNREFUSED");
    const staying = await untilCondition(leaving, "Ready", "False", "DeletionFailed");
    expect(conditionOf(staying, "Ready").message).toContain("ECONNREFUSED");
    expect(staying.metadata.finalizers).toEqual([FINALIZER]);
    await untilCondition(resting, "DriftUnknown", "True", "ConnectionRefused");
  });

  it("is told from one that refuses the password", async () => {
    await operator.restart({ env: { PSQL_PASSWORD: wrongPassword } });
    await apply(refused);
    const unauthorised = await untilCondition(refused, "Ready", "False", "AuthenticationFailed");
    expect(conditionOf(unauthorised, "Ready").message).toContain("password authentication failed");
    await untilCondition(resting, "DriftUnknown", "True", "AuthenticationFailed");
  });

  it("holds objects up only until it is back, and no password is told to anyone", async () => {
    await operator.restart({ env: { KINDSTACK_LOG_LEVEL: "trace" } });
    await Promise.all([untilReady(waiting), untilReady(refused), untilGone(leaving)]);
    await eventually(async () => expect(conditionTypes(await get(resting))).not.toContain("DriftUnknown"));
    const ids = [refused, resting, waiting].map(({ metadata }) => ({ id: `default/${metadata.name}` }));
    expect(await database.query(`SELECT id FROM ${table} ORDER BY id`)).toEqual(ids);

    const files = filesUnder(operator.directory);
    expect(files.filter((file) => file.includes("/state/.pulumi/stacks/"))).not.toEqual([]);
    const objects = await Promise.all([waiting, refused].map(get));
    const told = JSON.stringify([objects, await Promise.all(objects.map(eventsAbout))]) + operator.log;
    for (const password of [wrongPassword, controlPlane().env.PSQL_PASSWORD ?? ""]) {
      expect(password).not.toBe("");
      expect(told).not.toContain(password);
      expect(files.filter((file) => readIfThere(file)?.includes(password))).toEqual([]);
    }
  });
});

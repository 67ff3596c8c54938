import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../src/testing/eventually";
import { FINALIZER } from "../../stacks/contract/object";
import { controlPlane } from "../control-plane";
import { TestDatabase } from "../providers/postgres/database";
import { conditionOf, conditionTypes, untilCondition, untilGone, untilReady } from "./conditions";
import { postgresWriter, uniqueName } from "./manifests";
import { apply, edit, get, remove } from "./objects";
import { useOperator } from "./operator";

const [database, wrong] = [new TestDatabase(controlPlane().env), new TestDatabase(controlPlane().env)];
beforeAll(async () => {
  await wrong.open();
  await database.open();
});
afterAll(async () => {
  await database.close();
  await wrong.close();
});
const operator = useOperator({ args: ["--drift-interval", "1"], env: { PSQL_DBNAME: database.name } });

/* As after an upgrade with the wrong settings of the database. */
describe("an operator that was pointed at a database without records", () => {
  it.each([
    ["is empty", ""],
    ["has the table, without rows", "CREATE TABLE % (id text PRIMARY KEY, name text, age integer, country text)"],
  ])("that %s makes and deletes no row, says why, and continues when it is pointed back", async (_, statement) => {
    const table = await database.createStudents();
    const [leaving, changing, resting] = ["leaving", "changing", "resting"].map((name) =>
      postgresWriter(uniqueName(name), { table }),
    ) as [ReturnType<typeof postgresWriter>, ReturnType<typeof postgresWriter>, ReturnType<typeof postgresWriter>];
    for (const writer of [leaving, changing, resting]) await apply(writer);
    for (const writer of [leaving, changing, resting]) await untilReady(writer);
    await wrong.query(statement.replace("%", table));

    await operator.restart({ env: { PSQL_DBNAME: wrong.name } });
    await remove(leaving);
    await edit(changing, { spec: { age: 24 } });
    const staying = await untilCondition(leaving, "Ready", "False", "DeletionFailed");
    expect(conditionOf(staying, "Ready").message).toMatch(
      new RegExp(`default/${leaving.metadata.name}".* database "${wrong.name}" .* Check PSQL_HOST and PSQL_DBNAME`),
    );
    expect(staying.metadata.finalizers).toEqual([FINALIZER]);
    await untilCondition(changing, "Ready", "False", "OwnershipTableMissing");
    await untilCondition(resting, "DriftUnknown", "True", "OwnershipTableMissing");
    const schemas = "SELECT nspname FROM pg_namespace WHERE nspname = 'kindstack_ownership'";
    expect(await wrong.query(schemas)).toEqual([]);
    if (statement !== "") expect(await wrong.query(`SELECT * FROM ${table}`)).toEqual([]);

    await operator.restart();
    await untilGone(leaving);
    await untilReady(changing);
    await eventually(async () => expect(conditionTypes(await get(resting))).not.toContain("DriftUnknown"));
    expect(await database.query(`SELECT id, age FROM ${table} ORDER BY id`)).toEqual([
      { id: `default/${changing.metadata.name}`, age: 24 },
      { id: `default/${resting.metadata.name}`, age: 23 },
    ]);
  });
});

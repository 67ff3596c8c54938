import { beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import * as postgresSchema from "../../docs/examples/postgres-schema";
import { ClassifiedError } from "../../providers/errors";
import { providersOf } from "../../providers/index";
import { TestEngine } from "../automation/test-engine";
import { errorOf, retryable, terminal } from "./failures";
import { useDatabase } from "./postgres/database";

/* The provider of docs/write-a-provider.md, with a real engine and a real database. */

const { PostgresSchema, provider, stub } = postgresSchema;
const database = useDatabase();
let engine: TestEngine;
let count = 0;
let stack: string;

beforeAll(async () => {
  vi.stubEnv("DATABASE_URL", database.backendUrl());
  const own = [...providersOf([{ capabilities: { providers: [postgresSchema] } }])].filter(([key]) => key === stub);
  engine = await TestEngine.open(undefined, {}, own);
  return () => engine.close();
});
beforeEach(() => {
  stack = `stack_${++count}`;
});

/** An update to one schema of this name. */
const up = (inputs: Partial<postgresSchema.SchemaInputs>, options = {}) =>
  engine.engine.up(stack, () => void new PostgresSchema("schema", { name: stack, owner: "ours", ...inputs }), options);

async function ownerOf(name: string): Promise<unknown> {
  const text = "SELECT obj_description(oid, 'pg_namespace') AS owner FROM pg_namespace WHERE nspname = $1";
  return (await database.query(text, [name]))[0]?.owner;
}

describe("a provider of a kind's own", () => {
  it("creates, updates, replaces and deletes", async () => {
    expect(await up({})).toMatchObject({ failures: [], summary: { resourceChanges: { create: 1 } } });
    expect(await ownerOf(stack)).toBe("ours");
    expect(await up({ owner: "theirs" })).toMatchObject({ summary: { resourceChanges: { update: 1 } } });
    expect(await ownerOf(stack)).toBe("theirs");
    expect((await up({ owner: "theirs", name: `${stack}_b` })).summary.resourceChanges).toMatchObject({ replace: 1 });
    expect([await ownerOf(stack), await ownerOf(`${stack}_b`)]).toEqual([undefined, "theirs"]);
    expect(await engine.engine.destroy(stack)).toMatchObject({ summary: { result: "succeeded" } });
    expect(await ownerOf(`${stack}_b`)).toBeUndefined();
  });

  it("adopts what a create made that was cut off, and repairs drift", async () => {
    await provider.create({ name: stack, owner: "ours" });
    await up({});
    await database.query(`COMMENT ON SCHEMA ${stack} IS 'edited'`);
    expect((await up({})).summary.resourceChanges).toEqual({});
    expect((await up({}, { refresh: true })).summary.resourceChanges).toMatchObject({ update: 1 });
    expect(await ownerOf(stack)).toBe("ours");
    await database.query(`DROP SCHEMA ${stack}`);
    expect((await up({}, { refresh: true })).summary.resourceChanges).toMatchObject({ create: 1 });
  });

  it("releases what it only adopted, and all of it when that is asked for", async () => {
    await database.query(`CREATE SCHEMA ${stack}`);
    await up({});
    await engine.engine.destroy(stack);
    expect(await ownerOf(stack)).toBeNull();
    await up({ name: `${stack}_c` });
    await engine.engine.destroy(stack, { release: true });
    expect(await ownerOf(`${stack}_c`)).toBeNull();
  });

  it("reports errors by class", async () => {
    const failure = async (inputs: Partial<postgresSchema.SchemaInputs>) => (await up(inputs)).failures;
    expect(await failure({ name: "Upper Case" })).toEqual([terminal("Invalid")]);
    await provider.create({ name: stack, owner: "another" });
    expect(await failure({})).toEqual([terminal("Conflict", `^the schema ${stack} belongs to another$`)]);
    vi.stubEnv("DATABASE_URL", "postgres://127.0.0.1:1/none");
    const refused = await failure({});
    vi.stubEnv("DATABASE_URL", database.backendUrl());
    expect(refused).toEqual([retryable("ConnectionRefused")]);

    await up({ name: `${stack}_d` });
    await database.query(`CREATE TABLE ${stack}_d.kept ()`);
    const { failures } = await engine.engine.destroy(stack);
    expect(failures).toMatchObject([{ errorClass: "terminal", message: expect.stringContaining("still has tables") }]);
    expect(await errorOf(provider.create({ name: "", owner: "x" }))).not.toBeInstanceOf(ClassifiedError);
  });
});

import { beforeAll, describe, expect, it } from "vitest";
import { GoEngine } from "../../src/automation/go-engine";
import { useDatabase } from "../providers/postgres/database";
import { TestEngine } from "./test-engine";

describe("a state in PostgreSQL", () => {
  const database = useDatabase();
  let engine: TestEngine;
  let readers: TestEngine;

  beforeAll(async () => {
    engine = await TestEngine.open(`${database.backendUrl()}&table=state`);
    await engine.up("stack", { kept: "1", changed: "1", dropped: "1" });
    return async () => {
      await engine.close();
      await readers.close();
      await database.query(`DROP OWNED BY ${reader}; DROP ROLE ${reader}`);
    };
  });

  const reader = `reader_${database.name}`;

  /** A reader that connects as a role with the right to read the state's table, and with no other. */
  async function readOnly(): Promise<GoEngine> {
    await database.query(`CREATE ROLE ${reader} LOGIN PASSWORD 'reader'; GRANT SELECT ON state TO ${reader}`);
    const backendUrl = `${database.backendUrl({ user: reader, password: "reader" })}&table=state`;
    readers = await TestEngine.open(backendUrl, { workDirectory: engine.settings.workDirectory });
    return new GoEngine({ ...engine.options, processes: readers.options.processes });
  }

  it("a preview on a PostgreSQL backend needs no right but to read, and leaves the table as it was", async () => {
    const stacks = await readOnly();
    const before = await database.query("TABLE state ORDER BY key");

    const preview = await stacks.preview("stack", () => engine.declare("stack", { kept: "1", changed: "2", new: "1" }));
    expect(preview.failures).toEqual([]);
    expect(preview.changes.map(({ name, operation }) => `${operation} ${name}`).sort()).toEqual([
      "create new",
      "delete dropped",
      "same kept",
      "update changed",
    ]);
    const destroy = await stacks.previewDestroy("stack");
    expect(destroy.changes.map(({ operation }) => operation)).toEqual(["delete", "delete", "delete"]);
    expect((await stacks.exportStack("stack"))?.deployment.resources?.length).toBe(5);
    expect(await stacks.history("stack")).toMatchObject([{ kind: "update", result: "succeeded" }]);

    const fresh = await stacks.preview("fresh", () => engine.declare("fresh", { a: "1" }));
    expect(fresh).toMatchObject({ exists: false, changes: [{ name: "a", operation: "create" }], failures: [] });
    expect(await stacks.exportStack("fresh")).toBeUndefined();

    expect(await database.query("TABLE state ORDER BY key")).toEqual(before);
    expect([...engine.things.live.values()]).toEqual(["1", "1", "1"]);
  });
});

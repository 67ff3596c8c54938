import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { errorMessageOf } from "../../providers/errors";
import { GoEngine } from "../../src/automation/go-engine";
import { controlPlane } from "../control-plane";
import { useDatabase } from "../providers/postgres/database";
import { summaryOf, TestEngine } from "./test-engine";

const { PSQL_PASSWORD } = controlPlane().env;
const HISTORY_LIMIT = 20;

describe("the state in PostgreSQL", () => {
  const database = useDatabase();
  let engine: TestEngine;

  beforeAll(async () => {
    engine = await TestEngine.open(`${database.backendUrl()}&table=state`);
    return () => engine.close();
  });
  afterEach(() => engine.things.live.clear());

  const keysOf = async (stack: string) => {
    const found = "SELECT key FROM state WHERE position($1 in key) > 0 ORDER BY key";
    return (await database.query<{ key: string }>(found, [stack])).map(({ key }) => key);
  };
  const pendingIn = async (stack: string): Promise<unknown[]> => {
    const key = `${database.name}/.pulumi/stacks/kindstack/${stack}.json`;
    const found = "SELECT data->>'data' AS data FROM state WHERE key = $1";
    const [row] = await database.query<{ data: string }>(found, [key]);
    const { checkpoint } = JSON.parse(Buffer.from(row?.data ?? "", "base64").toString());
    return checkpoint.latest.pending_operations ?? [];
  };

  describe("the engine on a PostgreSQL backend", () => {
    it("has no stacks before the first update makes the table", async () => {
      expect(await engine.engine.listStacks()).toEqual([]);
      expect(await engine.engine.exportStack("first")).toBeUndefined();
      expect(await engine.engine.destroy("first")).toMatchObject({ found: false, failures: [] });
    });

    it("makes a stack the first time", async () => {
      const changesBy = async (value: string) => summaryOf(await engine.up("first", { a: value }));
      expect(await changesBy("1")).toEqual({ result: "succeeded", resourceChanges: { create: 1 } });
      expect(await changesBy("1")).toEqual({ result: "succeeded", resourceChanges: {} });
      expect(await changesBy("2")).toEqual({ result: "succeeded", resourceChanges: { update: 1 } });
      expect([...engine.things.live]).toEqual([["first/a", "2"]]);
    });

    it("knows that a stack was destroyed, until it is to forget that", async () => {
      const object = { uid: "uid", mustExist: true };
      await engine.up("gone", { a: "1" });
      for (const _ of [1, 2]) expect((await engine.engine.destroy("gone", { object })).failures).toEqual([]);
      expect(await keysOf("gone")).toEqual([expect.stringContaining("kindstack-destroyed/gone.json")]);
      await engine.engine.forgetDestroyed(["gone"]);
      expect(await keysOf("gone")).toEqual([]);
      expect((await engine.engine.destroy("gone", { object })).failures).toMatchObject([{ reason: "StateMissing" }]);
    });

    it("makes several stacks at once", async () => {
      const results = await Promise.all(["one", "two", "three"].map((stack) => engine.up(stack, { a: "1" })));
      expect(results.map(({ summary }) => summary.result)).toEqual(["succeeded", "succeeded", "succeeded"]);
      expect(engine.things.live.size).toBe(3);
      const made = [{ name: "one" }, { name: "two" }, { name: "three" }];
      expect(await engine.engine.listStacks()).toEqual(expect.arrayContaining(made));
    });

    it("destroys a stack, and leaves nothing of it in the table", async () => {
      await engine.up("gone", { a: "1" });
      expect(await keysOf("gone")).toContain(`${database.name}/.pulumi/stacks/kindstack/gone.json`);
      const destroyed = summaryOf(await engine.engine.destroy("gone"));
      expect(destroyed).toEqual({ result: "succeeded", resourceChanges: { delete: 1 } });
      expect(engine.things.live.size).toBe(0);
      expect(await keysOf("gone")).toEqual([]);
    });

    it(`leaves no more than the ${HISTORY_LIMIT} newest updates in a stack's history, and others' as they are`, async () => {
      await engine.up("long", { a: "1" });
      const own = `${database.name}/.pulumi/history/kindstack/long/long-`;
      const others = [own.replaceAll("long", "l_ng"), own.replaceAll("long", "longer")];
      const older = Array.from({ length: HISTORY_LIMIT }, (_, index) => String(9 + index));
      for (const start of [own, ...others]) {
        await database.query(
          `INSERT INTO state (key, data) SELECT $1 || time || '.' || what || '.json', '{}'
         FROM unnest($2::text[]) time, unnest('{history,checkpoint}'::text[]) what`,
          [start, older],
        );
      }
      await engine.up("long", { a: "2" });
      const kept = await keysOf("/long/");
      expect(kept).toHaveLength(2 * HISTORY_LIMIT);
      const times = new Set(kept.map((key) => /-(\d+)\./.exec(key)?.[1] ?? ""));
      expect([...times].filter((time) => time.length < 10).sort()).toEqual(older.slice(2).sort());
      for (const start of others) expect(await keysOf(start)).toHaveLength(2 * HISTORY_LIMIT);
    });

    it("respects the lock of somebody else, and names who holds it", async () => {
      const lock = `${database.name}/.pulumi/locks/organization/kindstack/theirs/1.json`;
      const content = { pid: 1, username: "ada", hostname: "laptop", timestamp: new Date() };
      const data = JSON.stringify({ data: Buffer.from(JSON.stringify(content)).toString("base64") });
      await database.query("INSERT INTO state (key, data) VALUES ($1, $2)", [lock, data]);
      await expect(engine.up("theirs", { a: "1" })).rejects.toMatchObject({
        reason: "Locked",
        message: expect.stringMatching(/created by ada@laptop \(pid 1\).*, run: kindstack state unlock theirs$/),
      });
      expect(await engine.engine.unlock("theirs")).toEqual([expect.stringContaining("ada@laptop")]);
      expect(await engine.up("theirs", { a: "1" })).toMatchObject({ summary: { result: "succeeded" } });
    });

    it("removes the lock of a CLI that was killed, and what that one had begun from the state", async () => {
      const { entered, release } = engine.things.holdSlow();
      const updating = engine.up("crashed", { a: "slow" });
      await entered;
      process.kill(-(await engine.lastPid()), "SIGKILL");
      await updating;
      release();
      expect(await pendingIn("crashed")).toHaveLength(1);
      const again = summaryOf(await engine.up("crashed", { a: "slow" }));
      expect(again).toEqual({ result: "succeeded", resourceChanges: { create: 1 } });
      expect((await keysOf("crashed")).filter((key) => key.includes("/locks/"))).toEqual([]);
      expect(await pendingIn("crashed")).toEqual([]);
    });

    it("keeps the password out of arguments", async () => {
      await engine.up("secret", { a: "1" });
      for (const { args } of await engine.takeStarts()) expect(args).not.toContain(PSQL_PASSWORD);
    });
  });

  it("a preview needs no right but to read, and leaves the table as it was", async () => {
    const reader = `reader_${database.name}`;
    await database.query(`CREATE ROLE ${reader} LOGIN PASSWORD 'reader'; GRANT SELECT ON state TO ${reader}`);
    const { workDirectory } = engine.settings;
    const backendUrl = `${database.backendUrl({ user: reader, password: "reader" })}&table=state`;
    const readers = await TestEngine.open(backendUrl, { workDirectory });
    const stacks = new GoEngine({ ...engine.options, processes: readers.options.processes });
    await engine.up("previewed", { kept: "1", changed: "1", dropped: "1" });
    const before = await database.query("TABLE state ORDER BY key");
    const declaring = (values: Record<string, string>) => () => engine.declare("previewed", values);

    const preview = await stacks.preview("previewed", declaring({ kept: "1", changed: "2", new: "1" }));
    expect(preview.failures).toEqual([]);
    const changes = Object.fromEntries(preview.changes.map(({ name, operation }) => [name, operation]));
    expect(changes).toEqual({ new: "create", dropped: "delete", kept: "same", changed: "update" });
    const destroy = await stacks.previewDestroy("previewed");
    expect(destroy.changes.map(({ operation }) => operation)).toEqual(["delete", "delete", "delete"]);
    expect((await stacks.exportStack("previewed"))?.deployment.resources?.length).toBe(5);
    expect(await stacks.history("previewed")).toMatchObject([{ kind: "update", result: "succeeded" }]);
    const fresh = await stacks.preview("fresh", declaring({ a: "1" }));
    expect(fresh).toMatchObject({ exists: false, changes: [{ name: "a", operation: "create" }], failures: [] });
    expect(await stacks.exportStack("fresh")).toBeUndefined();

    expect(await database.query("TABLE state ORDER BY key")).toEqual(before);
    expect([...engine.things.live.values()]).toEqual(["1", "1", "1"]);
    await readers.close();
    await database.query(`DROP OWNED BY ${reader}; DROP ROLE ${reader}`);
  });

  describe("a backend that cannot be reached", () => {
    it.each([
      ["whose database does not exist", { database: "no_such_database" }, /no_such_database/],
      ["that does not listen", { port: "1" }, /connection refused/],
    ])("%s is Unreadable, in the backend's words but without its password", async (_, changes, words) => {
      const unreachable = await TestEngine.open(`${database.backendUrl(changes)}&table=state`);
      try {
        const failed = await unreachable.up("acme", { a: "1" }).catch((error: unknown) => error);
        expect(failed).toMatchObject({ errorClass: "retryable", reason: "Unreadable" });
        expect(errorMessageOf(failed)).toMatch(words);
        expect(errorMessageOf(failed)).not.toContain(PSQL_PASSWORD);
      } finally {
        await unreachable.close();
      }
    });
  });
});

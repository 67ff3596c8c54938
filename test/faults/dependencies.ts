import { setTimeout as delay } from "node:timers/promises";
import { beforeAll, describe, expect, it } from "vitest";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { applyUntilReady, conditionOf, untilCondition, untilGone, untilReady } from "../e2e/conditions";
import { postgresWriter, tenant, uniqueName } from "../e2e/manifests";
import { apply, edit, find, get, remove } from "../e2e/objects";
import { useFaultOperator } from "./fault-operator";

/** How bad it gets. */
export interface Measure {
  /** Whether all is tried, or only what tells most. */
  isLong: boolean;
  /** How long the API server and the database are away. */
  awayMs: number;
  /** How long a statement takes in a slow database. */
  statementMs: number;
  /** How many rows are to be written to it at a time. */
  rows: number;
  /** How often an operator may try to reach the API server in that time, or the database, or what is refused. */
  attempts: { api: number; database: number; refused: number };
  /** Told what was measured. */
  note(text: string): void;
}

/** Until when all must be well again: the longest back-off of the time that it was away, and an update. */
const RECOVERY_MS = 180_000;

/** What an operator does while the API server or the database is away, slow, or refuses. */
export function describeDependencies({ isLong, awayMs, statementMs, rows, attempts, note }: Measure): void {
  const faulty = useFaultOperator({ args: ["--concurrency", "4", "--drift-interval", "5"] });
  let table: string;
  beforeAll(async () => {
    table = await faulty.createTable();
  });
  const newWriter = () => postgresWriter(uniqueName("writer"), { table });
  const newTenant = () => tenant(uniqueName("tenant"));
  const rowOf = async ({ metadata: { name } }: Manifest) =>
    (await faulty.database.query(`SELECT * FROM ${table} WHERE id = $1`, [`default/${name}`]))[0];

  describe("an API server that is down", () => {
    it("is asked less and less often; what happened meanwhile is done when it is back", async () => {
      const [edited, deleted, added, drifted] = [newWriter(), newTenant(), newTenant(), newWriter()];
      await Promise.all([edited, deleted, drifted].map(apply));
      await Promise.all([edited, deleted, drifted].map(untilReady));

      const { api, database } = faulty;
      const before = api.refusedConnections;
      api.faults.down = true;
      api.cut();
      await Promise.all([edit(edited, { spec: { age: 24 } }), remove(deleted), apply(added)]);
      await database.query(`UPDATE ${table} SET age = 99 WHERE id = $1`, [`default/${drifted.metadata.name}`]);
      await delay(awayMs);
      const tried = api.refusedConnections - before;
      api.faults.down = false;

      note(`${tried} attempts to reach an API server that was away for ${awayMs / 1000} s`);
      expect(tried).toBeGreaterThan(0);
      expect(tried).toBeLessThan(attempts.api);
      await recovered(async () => {
        await Promise.all([edited, added, drifted].map(isReady));
        expect(await rowOf(edited)).toMatchObject({ age: 24 });
        expect(await rowOf(drifted)).toMatchObject({ age: 23 });
        expect(await find(deleted)).toBeUndefined();
      });
    });

    if (isLong)
      it("in the middle of updates, makes them succeed later", async () => {
        const { api } = faulty;
        const objects = [newWriter(), newTenant(), newTenant()];
        await faulty.operator.untilUpdating(1, () => Promise.all(objects.map(apply)));
        api.faults.down = true;
        api.cut();
        await delay(awayMs / 2);
        api.faults.down = false;
        await recovered(() => Promise.all(objects.map(isReady)));
        await Promise.all(objects.map(remove));
        await recovered(async () => expect(await Promise.all(objects.map(find))).toEqual(objects.map(() => undefined)));
      });
  });

  if (isLong)
    describe("an API server that refuses to make namespaces", () => {
      it("is what a Tenant says, and is asked less and less often; rows are written meanwhile", async () => {
        let writes = 0;
        faulty.api.faults.refuse = ({ method, url }) => {
          if (method === "GET" || !url.pathname.startsWith("/api/v1/namespaces")) return undefined;
          writes++;
          return 503;
        };
        const [waiting, served] = [newTenant(), newWriter()];
        await apply(waiting);
        const failed = await untilCondition(waiting, "Ready", "False");
        expect(conditionOf(failed, "Ready").message).toContain("a fault of the test");
        expect(conditionOf(failed, "Reconciling").status).toBe("True");
        await applyUntilReady(served);
        await delay(awayMs);
        note(`${writes} attempts at what the API server refused for ${awayMs / 1000} s`);
        expect(writes).toBeLessThan(attempts.refused);

        faulty.api.faults = {};
        await recovered(() => isReady(waiting));
      });
    });

  describe("a database", () => {
    const troubles: Trouble[] = [
      {
        trouble: "that is away",
        reason: /^Connection(Refused|Lost)$/,
        begin: async () => {
          faulty.postgres.faults.down = true;
          faulty.postgres.cut();
        },
        end: async () => {
          faulty.postgres.faults.down = false;
        },
      },
      {
        trouble: "that has no connection left",
        reason: /^TooManyConnections$/,
        begin: async () => {
          await faulty.database.query(`ALTER ROLE ${faulty.role} CONNECTION LIMIT 0`);
          await faulty.endSessions();
        },
        end: async () => {
          await faulty.database.query(`ALTER ROLE ${faulty.role} CONNECTION LIMIT -1`);
        },
      },
      {
        trouble: "that may only be read",
        reason: /^DatabaseReadOnly$/,
        begin: async () => {
          await faulty.database.query(`ALTER ROLE ${faulty.role} SET default_transaction_read_only = on`);
          await faulty.endSessions();
        },
        end: async () => {
          await faulty.database.query(`ALTER ROLE ${faulty.role} RESET default_transaction_read_only`);
          await faulty.endSessions();
        },
      },
    ];

    it.each(isLong ? troubles : troubles.slice(0, 1))(
      "$trouble is what its objects say, and holds no other client up",
      async ({ trouble, reason, begin, end }) => {
        const [added, edited, deleted, served] = [newWriter(), newWriter(), newWriter(), newTenant()];
        await Promise.all([edited, deleted].map(apply));
        await Promise.all([edited, deleted].map(untilReady));

        await begin();
        const before = faulty.postgres.connections;
        await Promise.all([apply(added), edit(edited, { spec: { age: 24 } }), remove(deleted), apply(served)]);
        await untilReady(served);
        for (const object of [added, edited]) {
          const failed = await untilCondition(object, "Ready", "False");
          expect(conditionOf(failed, "Ready").reason).toMatch(reason);
          expect(conditionOf(failed, "Reconciling").status).toBe("True");
        }
        const staying = await untilCondition(deleted, "Ready", "False", "DeletionFailed");
        expect(staying.metadata.finalizers).not.toEqual([]);
        await delay(awayMs);
        const tried = faulty.postgres.connections - before;
        note(`${tried} attempts to connect to a database ${trouble}`);
        expect(tried).toBeLessThan(attempts.database);

        await end();
        await recovered(async () => {
          await Promise.all([added, edited].map(isReady));
          expect(await rowOf(edited)).toMatchObject({ age: 24 });
        });
        await untilGone(deleted);
        expect(await rowOf(deleted)).toBeUndefined();
      },
    );

    if (isLong)
      it("that is slow holds no other client up, and all its rows are written", { timeout: 600_000 }, async () => {
        faulty.postgres.faults.delayMs = statementMs;
        const writers = Array.from({ length: rows }, newWriter);
        const served = newTenant();
        await faulty.operator.untilUpdating(1, () => Promise.all(writers.map(apply)));
        const started = performance.now();
        await applyUntilReady(served);
        note(`a Tenant was served in ${Math.round(performance.now() - started)} ms`);
        await eventually(() => Promise.all(writers.map(isReady)), 500_000);
        note(`${rows} rows were written in ${Math.round(performance.now() - started)} ms`);
        faulty.postgres.faults = {};
        await Promise.all(writers.map(remove));
        await Promise.all(writers.map(untilGone));
      });
  });
}

interface Trouble {
  trouble: string;
  reason: RegExp;
  begin(): Promise<void>;
  end(): Promise<void>;
}

function recovered<T>(assertion: () => Promise<T>): Promise<T> {
  return eventually(assertion, RECOVERY_MS);
}

/** @throws when it is not Ready as it is now specified */
async function isReady(object: Manifest): Promise<LiveObject> {
  const found = await get(object);
  const ready = conditionOf(found, "Ready");
  if (ready.status !== "True" || ready.observedGeneration !== found.metadata.generation) {
    throw new Error(`${object.kind} ${object.metadata.name} is not ready: ${JSON.stringify(found.status)}`);
  }
  return found;
}

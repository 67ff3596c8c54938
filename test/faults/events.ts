import { afterEach, beforeAll, describe, expect, it } from "vitest";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import { ownerUidOf } from "../../providers/kubernetes/ownership";
import { eventually } from "../../src/testing/eventually";
import { untilGone, untilReady } from "../e2e/conditions";
import { deploymentOf, memcached, namespace, postgresWriter, tenant, uniqueName } from "../e2e/manifests";
import { apply, create, edit, find, get, remove } from "../e2e/objects";
import type { ApiFaults, WatchEvent } from "./api-proxy";
import { useFaultOperator } from "./fault-operator";

const RELIST_S = 5;

/** How events get lost, or become others. */
const LOSSES: Record<string, () => ApiFaults> = {
  "are lost": () => ({ event: (event) => (event.type === "BOOKMARK" ? [event] : []) }),
  "come late": () => ({ eventDelayMs: 1_500 }),
  "are lost with their watches, which fall silent": () => ({ silent: () => true }),
  "are each followed by the end of their version, 410": () => ({ event: (event) => [event, GONE] }),
  "are not to be had, nor for a while any list": () => {
    let refusals = 40;
    return { refuse: ({ intent }) => (["list", "watch"].includes(intent) && refusals-- > 0 ? 410 : undefined) };
  },
};
const GONE = {
  type: "ERROR",
  object: { kind: "Status", code: 410, reason: "Expired", message: "too old resource version" },
} as unknown as WatchEvent;

const isOurs = ({ object }: WatchEvent, names: string[]) => names.includes(object.metadata?.name);
const WAYS: Record<string, (names: string[]) => ApiFaults> = {
  "as a change": (names) => ({
    event: (event) => {
      if (!isOurs(event, names)) return [event];
      return event.type === "ADDED" ? [{ ...event, type: "MODIFIED" }] : [];
    },
  }),
  "in a list": (names) => ({ event: (event) => (isOurs(event, names) ? [] : [event]) }),
  "after the first was seen to be deleted": (names) => ({
    event: (event) => (isOurs(event, names) && event.type === "DELETED" ? [] : [event]),
  }),
};

/** Which of the ways below are tried, and how often; all of them where it is not said. */
interface Choice {
  losses?: readonly string[];
  ways?: readonly string[];
  rounds: number;
}

/** What an operator does that is not told of changes, or of others. */
export function describeEvents({ losses = Object.keys(LOSSES), ways = Object.keys(WAYS), rounds }: Choice): void {
  const faulty = useFaultOperator({
    args: ["--concurrency", "8", "--relist-interval", String(RELIST_S), "--drift-interval", "600"],
  });
  let table: string;
  beforeAll(async () => {
    table = await faulty.createTable();
  });

  async function rowOf({ metadata: { name } }: Manifest): Promise<unknown> {
    return (await faulty.database.query(`SELECT * FROM ${table} WHERE id = $1`, [`default/${name}`]))[0];
  }

  describe.each(roundsOf(rounds))("round %i: changes whose events", () => {
    it.each(losses)("%s come about all the same", async (loss) => {
      const [changed, deleted, added] = ["changed", "deleted", "added"].map((name) =>
        postgresWriter(uniqueName(name), { table }),
      ) as [Manifest, Manifest, Manifest];
      const grown = tenant(uniqueName("grown"));
      await Promise.all([changed, deleted, grown].map(apply));
      await Promise.all([changed, deleted, grown].map(untilReady));

      const { api } = faulty;
      api.faults = LOSSES[loss]?.() ?? {};
      if (api.faults.refuse !== undefined) api.cut();
      const name = grown.metadata.name as string;
      await Promise.all([
        edit(changed, { spec: { age: 24 } }),
        edit(grown, { spec: { namespaces: [name, `${name}-2`] } }),
        remove(deleted),
        apply(added),
        remove(namespace(name)), // what a Tenant made: it is to be made again
      ]);
      await Promise.all([changed, added, grown].map(untilReady));
      await untilGone(deleted);
      expect(await rowOf(changed)).toMatchObject({ age: 24 });
      expect(await rowOf(added)).toMatchObject({ id: `default/${added.metadata.name}` });
      expect(await rowOf(deleted)).toBeUndefined();
      await eventually(async () => {
        for (const made of [name, `${name}-2`]) {
          expect((await get(namespace(made))).metadata.deletionTimestamp).toBeUndefined();
        }
      });
    });
  });

  describe.each(roundsOf(rounds))(
    "round %i: an object that was deleted and made again under its name, of which only the second is seen",
    () => {
      afterEach(() => {
        faulty.api.faults = {};
      });

      it.each(ways)("%s, takes over what is there", async (way) => {
        const { api } = faulty;
        const [tenanted, written, cache] = [
          tenant(uniqueName("again")),
          postgresWriter(uniqueName("again"), { table }),
          memcached(uniqueName("again")),
        ];
        const objects = [tenanted, written, cache];
        const made = () => find(namespace(tenanted.metadata.name as string));
        await Promise.all(objects.map(apply));
        const first = await Promise.all(objects.map(untilReady));
        const before = await made();

        api.faults = WAYS[way]?.(objects.map(({ metadata }) => metadata.name as string)) ?? {};
        for (const object of objects) {
          await remove(object);
          await edit(object, { metadata: { finalizers: null } }).catch(() => undefined);
          await eventually(async () => expect(await find(object)).toBeUndefined());
          await create(object);
        }
        const second = await eventually(async () => {
          const found = await Promise.all(objects.map(untilReady));
          expect(found.map(uidOf)).not.toEqual(first.map(uidOf));
          expect(ownerUidOf((await made()) as LiveObject)).toBe(uidOf(found[0] as LiveObject));
          expect(ownerUidOf(await get(deploymentOf(cache)))).toBe(uidOf(found[2] as LiveObject));
          return found;
        });

        expect(await rowOf(written)).toMatchObject({ id: `default/${written.metadata.name}` });
        const owners = await faulty.database.query("SELECT owner FROM kindstack_ownership.records WHERE key = $1", [
          `default/${written.metadata.name}`,
        ]);
        expect(owners).toEqual([{ owner: uidOf(second[1] as LiveObject) }]);
        // Where the end of the first was seen, its destroy may have begun before there was a second.
        if (way !== "after the first was seen to be deleted")
          expect(uidOf((await made()) as LiveObject)).toBe(uidOf(before as LiveObject));
        expect((await made())?.metadata.deletionTimestamp).toBeUndefined();
      });
    },
  );
}

const uidOf = ({ metadata }: LiveObject) => metadata.uid;

const roundsOf = (rounds: number) => Array.from({ length: rounds }, (_, index) => index + 1);

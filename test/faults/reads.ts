import { execFile } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, it, vi } from "vitest";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import { OWNER_UID_LABEL } from "../../providers/kubernetes/ownership";
import { eventually } from "../../src/testing/eventually";
import { untilReady } from "../e2e/conditions";
import { DEPLOYMENT, memcached, objectOf, POD, podSet, postgresWriter, tenant, uniqueName } from "../e2e/manifests";
import { apply, client, edit, find, get, remove } from "../e2e/objects";
import type { ApiFaults, ApiRequest, List } from "./api-proxy";
import { useFaultOperator } from "./fault-operator";
import { existenceOf, expectNothingOf, type Place } from "./scenario";
import { folderStore } from "./state-store";

const MAIN = path.resolve(__dirname, "../../dist/src/cli/main.js");
/** How often a read fails, and what it is answered then. */
const RATE = 0.2;
const FAULTS = ["error", "unserved", "empty", "outdated"] as const;
/** What only something that hangs takes: a back-off that random faults have made long, and an update. */
const RECOVERY_MS = 120_000;

/** A generator of numbers from 0 to 1, the same for the same seed (mulberry32). */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Reads that fail at random, and what was written meanwhile. */
class BadReads {
  /** What the API server has deleted, and created, by path. */
  deleted: string[] = [];
  created: string[] = [];
  /** How often which fault has happened. */
  readonly counts = { error: 0, unserved: 0, empty: 0, outdated: 0 };
  readonly #next: () => number;
  /** The first list that was told of each path. */
  readonly #lists = new Map<string, List>();

  constructor(
    seed: number,
    private readonly isWatched: (path: string) => boolean,
  ) {
    this.#next = random(seed);
  }

  get faults(): ApiFaults {
    return {
      refuse: ({ intent }) => {
        if (intent !== "get" && intent !== "list") return undefined;
        const fault = this.#happens(intent === "get" ? 2 : 4, 2);
        return fault === "error" ? 500 : fault === "unserved" ? 404 : undefined;
      },
      list: (list, request) => this.#told(list, request),
      answered: ({ method, url }, status) => {
        if (status < 300 && this.isWatched(url.pathname) && url.searchParams.get("dryRun") === null) {
          if (method === "DELETE") this.deleted.push(url.pathname);
          if (status === 201) this.created.push(url.pathname);
        }
        return true;
      },
    };
  }

  #told(list: List, { url }: ApiRequest): List {
    const key = `${url.pathname}?${url.searchParams.get("labelSelector")}`;
    const first = this.#lists.get(key);
    if (first === undefined) this.#lists.set(key, list);
    const fault = this.#happens(4, 0);
    if (fault === "empty") return { ...list, items: [] };
    return fault === "outdated" && first !== undefined ? first : list;
  }

  /** One of the faults, from the first on, at its share of the rate. */
  #happens(among: number, upTo: number): (typeof FAULTS)[number] | undefined {
    const drawn = this.#next();
    const index = Math.floor((drawn / RATE) * among);
    const fault = FAULTS[index];
    if (drawn >= RATE || fault === undefined || (upTo === 2 ? index >= 2 : index < 2)) return undefined;
    this.counts[fault]++;
    return fault;
  }
}

export interface Choice {
  seeds: readonly number[];
  /** For how long reads fail in each phase. */
  faultyMs: number;
}

/** What an operator does whose reads fail at random: with an error, a 404 of the type, an empty list, an outdated one. */
export function describeReads({ seeds, faultyMs }: Choice): void {
  const faulty = useFaultOperator({
    args: ["--concurrency", "8", "--drift-interval", "1", "--relist-interval", "3"],
  });
  let place: Place;
  beforeAll(async () => {
    const table = await faulty.createTable();
    await faulty.database.query(`CREATE TABLE ${table}_2 (LIKE ${table} INCLUDING ALL)`);
    await faulty.database.query(`ALTER TABLE ${table}_2 OWNER TO ${faulty.role}`);
    place = { state: folderStore(faulty.operator), database: faulty.database, table };
  });

  describe.each(seeds)("reads that fail at random, seed %i", (seed) => {
    it("delete nothing, make nothing twice, and have nothing reported that is not so", async () => {
      const name = uniqueName("reads");
      const objects = [
        tenant(`${name}-t`, { namespaces: [`${name}-a`, `${name}-b`] }),
        podSet(name, 3),
        memcached(`${name}-m`),
        postgresWriter(`${name}-w`, { table: place.table }),
      ];
      const reads = new BadReads(seed, (path) => path.includes(name) && !path.includes("/events/"));
      /** Does something while reads fail. @returns what is there as soon as all objects say that it is done */
      const whileFaulty = async (act: () => Promise<unknown>) => {
        [reads.created, reads.deleted] = [[], []];
        faulty.api.faults = reads.faults;
        await act();
        const over = performance.now() + faultyMs;
        return vi.waitFor(
          async () => {
            if (performance.now() > over) faulty.api.faults = { ...reads.faults, ...PASSING };
            return existenceOf(name, objects, place);
          },
          { timeout: RECOVERY_MS, interval: 200 },
        );
      };
      const pods = async () => {
        const { uid } = (await get(objects[1] as Manifest)).metadata;
        return (await client.list(POD, { labelSelector: `${OWNER_UID_LABEL}=${uid}` })).items;
      };
      const settled = async () => {
        faulty.api.faults = { ...reads.faults, ...PASSING };
        await Promise.all(objects.map(untilReady));
        return existenceOf(name, objects, place);
      };

      // Creation.
      const made = await whileFaulty(() => Promise.all(objects.map(apply)));
      expect({ made: (await settled()).made, deleted: reads.deleted }).toEqual({ made: made.made, deleted: [] });
      expect(repeated(reads.created)).toEqual([]);
      expect(await pods()).toHaveLength(3);

      // Drift: one Pod is gone, a field is another, a row is another.
      const before = await pods();
      await whileFaulty(async () => {
        await remove(before[0] as LiveObject);
        await edit(objectOf(DEPLOYMENT, `${name}-m`, "default"), { spec: { replicas: 3 } });
        await faulty.database.query(`UPDATE ${place.table} SET age = 99 WHERE id = $1`, [`default/${name}-w`]);
      });
      // The operator lists every few seconds, so that each fault happens sooner or later.
      faulty.api.faults = reads.faults;
      await eventually(() => expect(FAULTS.filter((fault) => reads.counts[fault] === 0)).toEqual([]));
      await eventually(async () => expect((await settled()).made).toEqual(made.made));
      expect(reads.deleted).toEqual([]);
      expect(reads.created.filter((path) => path.includes("/pods/"))).toHaveLength(1);

      // Preview of the objects as they are.
      faulty.api.faults = reads.faults;
      const actions = await previewed(objects);
      expect(actions.filter((action) => ["create", "delete", "replace", "update"].includes(action))).toEqual([]);

      // Update.
      await whileFaulty(() =>
        Promise.all([
          edit(objects[0] as Manifest, { spec: { adminGroups: ["others"] } }),
          edit(objects[1] as Manifest, { spec: { replicas: 4 } }),
          edit(objects[2] as Manifest, { spec: { size: 2 } }),
          edit(objects[3] as Manifest, { spec: { age: 24 } }),
        ]),
      );
      await settled();
      expect(reads.deleted).toEqual([]);
      expect(reads.created.filter((path) => path.includes("/pods/"))).toHaveLength(1);

      // Deletion.
      const uids = (await Promise.all(objects.map(get))).map(({ metadata }) => metadata.uid);
      faulty.api.faults = reads.faults;
      await Promise.all(objects.map(remove));
      const over = performance.now() + faultyMs;
      await vi.waitFor(
        async () => {
          if (performance.now() > over) faulty.api.faults = {};
          expect(await Promise.all(objects.map(find))).toEqual(objects.map(() => undefined));
        },
        { timeout: RECOVERY_MS, interval: 200 },
      );
      await expectNothingOf(name, objects, place);
      expect(uids).toHaveLength(objects.length);
    }, 600_000);
  });

  /** The actions of a preview that reads through the proxy. */
  async function previewed(objects: readonly Manifest[]): Promise<string[]> {
    const { directory, stateDirectory, workDirectory } = faulty.operator;
    const file = path.join(directory, "objects.json");
    fs.writeFileSync(file, JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }));
    const env = {
      ...process.env,
      KUBECONFIG: path.join(directory, "kubeconfig"),
      PULUMI_BACKEND_URL: `file://${stateDirectory}`,
      KINDSTACK_WORK_DIR: workDirectory,
    };
    const running = promisify(execFile)(process.execPath, [MAIN, "preview", "-f", file, "-o", "json"], { env });
    const { stdout } = await running.catch((error: { stdout: string }) => error);
    const { objects: plans } = JSON.parse(stdout) as { objects: { action: string }[] };
    return plans.map(({ action }) => action);
  }
}

/** Nothing goes wrong; what is written is still noted. */
const PASSING: ApiFaults = { refuse: () => undefined, list: (list) => list };

function repeated(paths: readonly string[]): string[] {
  return paths.filter((path, index) => paths.indexOf(path) !== index);
}

import fs from "node:fs";
import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import { expect, vi } from "vitest";
import type { LiveObject, Manifest, ResourceType } from "../../providers/kubernetes/client";
import { OWNER_UID_LABEL } from "../../providers/kubernetes/ownership";
import { findCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import { eventually } from "../e2e/eventually";
import {
  apply,
  CAPSULE_TENANT,
  capsuleTenant,
  client,
  DEPLOYMENT,
  edit,
  find,
  get,
  LIMIT_RANGE,
  MEMCACHED,
  memcached,
  NAMESPACE,
  NETWORK_POLICY,
  namespace,
  POD,
  POD_SET,
  POSTGRES_WRITER,
  podSet,
  postgresWriter,
  RESOURCE_QUOTA,
  ROLE_BINDING,
  remove,
  TENANT,
  tenant,
  uniqueName,
} from "../e2e/objects";
import type { TestOperator } from "../e2e/operator";
import type { TestDatabase } from "../providers/postgres/database";

/** What the kinds make. */
const MADE: ResourceType[] = [NAMESPACE, ROLE_BINDING, DEPLOYMENT, POD, LIMIT_RANGE, NETWORK_POLICY, RESOURCE_QUOTA];
/** How long a crash may delay an end state: a restart, a back-off, and an update on a busy machine. */
const SETTLE_MS = 60_000;

/** The kinds by what their objects are in a life: as they begin, and what is changed of them later. */
const SUBJECTS = {
  Tenant: {
    type: TENANT,
    first: (name: string) => tenant(name),
    change: (name: string) => ({ adminEmail: "other@example.com", adminGroups: [], namespaces: [name, `${name}-2`] }),
  },
  PostgresWriter: {
    type: POSTGRES_WRITER,
    first: (name: string, table: string) => postgresWriter(name, { table }),
    change: (_: string, table: string) => ({ table: `${table}_2`, age: 24 }),
  },
  PodSet: { type: POD_SET, first: (name: string) => podSet(name, 2), change: () => ({ replicas: 1 }) },
  Memcached: {
    type: MEMCACHED,
    first: (name: string) => memcached(name),
    change: () => ({ size: 2, containerPort: 11212 }),
  },
  CapsuleTenant: {
    type: CAPSULE_TENANT,
    first: (name: string) =>
      capsuleTenant(`${name}-capsule`, {
        limitRanges: [{ limits: [{ type: "Pod", max: { cpu: "1" } }] }],
        resourceQuotas: [{ hard: { pods: "10" } }],
      }),
    change: () => ({ limitRanges: [], resourceQuotas: [{ hard: { pods: "9" } }] }),
  },
} as const;
export type Subject = keyof typeof SUBJECTS;
export const ALL_SUBJECTS = Object.keys(SUBJECTS) as Subject[];

/** A database with the two tables that rows are in, the second of which they move to. */
export async function createTables(database: TestDatabase): Promise<string> {
  const table = await database.createStudents();
  await database.query(`CREATE TABLE ${table}_2 (LIKE ${table} INCLUDING ALL)`);
  return table;
}

/**
 * Objects that are made, changed and deleted together, and all that exists because of them, in words that do not depend
 * on their names.
 */
export class Life {
  readonly name = uniqueName("life");
  readonly #subjects: readonly Subject[];
  readonly #operator: TestOperator;
  readonly #database: TestDatabase;
  readonly #table: string;

  constructor(
    subjects: readonly Subject[],
    { operator, database, table }: { operator: TestOperator; database: TestDatabase; table: string },
  ) {
    this.#subjects = subjects;
    this.#operator = operator;
    this.#database = database;
    this.#table = table;
  }

  async create(): Promise<void> {
    if (this.#subjects.includes("CapsuleTenant")) {
      await apply(namespace(`${this.name}-blue`, { labels: { "capsule.clastix.io/tenant": `${this.name}-capsule` } }));
    }
    await Promise.all(this.#objects.map(apply));
  }

  async change(): Promise<void> {
    await Promise.all(
      this.#subjects.map((subject) =>
        edit(this.#object(subject), { spec: SUBJECTS[subject].change(this.name, this.#table) }),
      ),
    );
  }

  async delete(): Promise<void> {
    await Promise.all(this.#objects.map(remove));
  }

  /** Waits until what is there is what `expected` says. */
  async settled(expected: unknown): Promise<void> {
    await eventually(async () => expect(await this.#found()).toEqual(expected), SETTLE_MS);
  }

  /** Waits until what is there does not change any more. @returns it */
  async rested(): Promise<unknown> {
    let before: unknown;
    return vi.waitFor(
      async () => {
        const found = await this.#found();
        const rests = isDeepStrictEqual(found, before);
        before = found;
        if (!rests) throw new Error("it still changes");
        return found;
      },
      { timeout: SETTLE_MS, interval: 1_000 },
    );
  }

  /** Waits until nothing is left of it. */
  async gone(): Promise<void> {
    await eventually(async () => {
      for (const object of this.#objects) expect(await find(object)).toBeUndefined();
    }, SETTLE_MS);
    // What the garbage collector takes, the namespaces of Capsule's Tenants, goes later; what ends slowly is on its way.
    await eventually(async () => {
      const left = (await allMade()).filter((object) => JSON.stringify(object).includes(this.name));
      expect(left.filter(({ metadata }) => metadata.deletionTimestamp === undefined)).toEqual([]);
    });
    expect(await this.#rows()).toEqual({ first: [], second: [] });
    expect(this.#operator.stateFiles(this.name)).toEqual([]);
  }

  get #objects(): Manifest[] {
    return this.#subjects.map((subject) => this.#object(subject));
  }

  #object(subject: Subject): Manifest {
    return SUBJECTS[subject].first(this.name, this.#table);
  }

  async #found(): Promise<unknown> {
    const objects = await Promise.all(this.#objects.map(get));
    for (const object of objects) {
      const ready = findCondition(statusOf(object).conditions, "Ready");
      if (ready?.status !== "True" || ready.observedGeneration !== object.metadata.generation) {
        throw new Error(`${object.kind} ${this.name} is not ready: ${JSON.stringify(object.status)}`);
      }
    }
    const uids = new Set(objects.map(({ metadata }) => metadata.uid));
    const made = (await allMade())
      .filter(({ metadata }) => uids.has(metadata.labels?.[OWNER_UID_LABEL] ?? ""))
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    const found = {
      objects: objects.map((object) => ({
        kind: object.kind,
        finalizers: object.metadata.finalizers,
        generation: object.metadata.generation,
        status: timeless(object),
      })),
      made: made.map(essence).sort(byText),
      rows: await this.#rows(),
      states: this.#states(),
    };
    let text = JSON.stringify(found);
    for (const [index, uid] of [...uids].entries()) text = text.replaceAll(uid, `uid-${index}`);
    text = text.replaceAll(this.name, "NAME");
    text = text
      .replace(/NAME-pod-[a-z0-9]{5}/g, "NAME-pod-ANY")
      .replace(/(NAME|NAME-capsule)-[0-9a-f]{12,}/g, "$1-DIGEST");
    return JSON.parse(text);
  }

  async #rows(): Promise<{ first: unknown[]; second: unknown[] }> {
    const rows = (table: string) => this.#database.query(`SELECT * FROM ${table} WHERE id LIKE $1`, [`%${this.name}%`]);
    return { first: await rows(this.#table), second: await rows(`${this.#table}_2`) };
  }

  /** What the states of its stacks have in them. */
  #states(): unknown[] {
    return this.#operator
      .stateFiles("/stacks/")
      .filter((file) => file.endsWith(".json") && path.basename(file).includes(this.name))
      .map((file) => {
        const { checkpoint } = JSON.parse(fs.readFileSync(file, "utf8")) as Checkpoint;
        const { resources = [], pending_operations: pending = [] } = checkpoint.latest ?? {};
        return { resources: resources.map(({ type, urn }) => [type, urn.split("::").pop()]), pending };
      })
      .map((state) => ({ ...state, resources: state.resources.sort(byText) }))
      .sort(byText);
  }
}

/** What has an owner among the objects of any kind. */
async function allMade(): Promise<LiveObject[]> {
  const lists = await Promise.all(MADE.map((type) => client.list(type, { labelSelector: OWNER_UID_LABEL })));
  return lists.flatMap(({ items }) => items);
}

interface Checkpoint {
  checkpoint: { latest?: { resources?: { type: string; urn: string }[]; pending_operations?: unknown[] } };
}

/** A status without what depends on when things happened. */
function timeless(object: LiveObject): unknown {
  const { conditions = [], stack, ...rest } = statusOf(object);
  return {
    ...rest,
    stack: { ...stack, resources: stack?.resources?.map(({ id }) => id) },
    conditions: conditions.map(({ type, status, reason }) => [type, status, reason]).sort(byText),
  };
}

/** What an object is, without what the API server and other controllers add. */
function essence({ kind, metadata, spec, roleRef, subjects }: LiveObject): unknown {
  const { name, namespace: place, labels, annotations = {} } = metadata;
  const { "deployment.kubernetes.io/revision": _, ...noted } = annotations;
  // A Pod's spec has a volume of a random name.
  return { kind, name, place, labels, noted, ...(kind !== "Pod" && { spec, roleRef, subjects }) };
}

function byText(a: unknown, b: unknown): number {
  return JSON.stringify(a) < JSON.stringify(b) ? -1 : 1;
}

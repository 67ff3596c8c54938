import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import { expect, vi } from "vitest";
import type { LiveObject, Manifest, ResourceType } from "../../providers/kubernetes/client";
import { OWNER_UID_LABEL } from "../../providers/kubernetes/ownership";
import { findCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import {
  capsuleTenant,
  DEPLOYMENT,
  LIMIT_RANGE,
  memcached,
  NAMESPACE,
  NETWORK_POLICY,
  namespace,
  namespaceOf,
  POD,
  podSet,
  postgresWriter,
  RESOURCE_QUOTA,
  ROLE_BINDING,
  tenant,
  uniqueName,
} from "../e2e/manifests";
import { apply, client, edit, find, get, remove } from "../e2e/objects";
import { RECORDS, type TestDatabase } from "../providers/postgres/database";
import { noneWithoutTable, type StateStore } from "./state-store";

/** What the kinds make. */
const MADE: ResourceType[] = [NAMESPACE, ROLE_BINDING, DEPLOYMENT, POD, LIMIT_RANGE, NETWORK_POLICY, RESOURCE_QUOTA];
/** For a scenario without faults. */
const REST_MS = 120_000;

/** Made at the same time, so many have updates side by side, whose rows may be written together. */
const MANY_WRITERS = 12;

/** The subjects of scenarios: objects by their first spec, and what is changed later. */
const SUBJECTS = {
  Tenant: {
    first: (name: string) => [tenant(name, { namespaces: [name, `${name}-1`] })],
    change: (name: string) => ({ adminEmail: "other@example.com", adminGroups: [], namespaces: [name, `${name}-2`] }),
  },
  PostgresWriter: {
    first: (name: string, table: string) => [writer(name, `${name}-lone`, table)],
    change: (_: string, table: string) => ({ table: `${table}_2`, age: 24 }),
  },
  PostgresWriters: {
    first: (name: string, table: string) =>
      Array.from({ length: MANY_WRITERS }, (_, index) => writer(name, `${name}-${index}`, table)),
    // The first stays as it is, next to others that do not.
    change: (_: string, table: string, index: number) => (index === 0 ? {} : { table: `${table}_2`, age: 24 }),
  },
  PodSet: { first: (name: string) => [podSet(name, 2)], change: () => ({ replicas: 1 }) },
  Memcached: {
    first: (name: string) => [memcached(name)],
    change: () => ({ size: 2, containerPort: 11212 }),
  },
  CapsuleTenant: {
    first: (name: string) => [
      capsuleTenant(`${name}-capsule`, {
        limitRanges: [{ limits: [{ type: "Pod", max: { cpu: "1" } }] }],
        resourceQuotas: [{ hard: { pods: "10" } }],
      }),
    ],
    change: () => ({ limitRanges: [], resourceQuotas: [{ hard: { pods: "9" } }] }),
  },
} as const;
export type Subject = keyof typeof SUBJECTS;
export const ALL_SUBJECTS = Object.keys(SUBJECTS) as Subject[];
/** One of each kind. */
export const ALL_KINDS = ALL_SUBJECTS.filter((subject) => subject !== "PostgresWriter");

function writer(scenario: string, name: string, table: string): Manifest {
  return postgresWriter(name, { table }, rowsNamespace(scenario));
}

/** Has the objects of no other scenario. */
function rowsNamespace(scenario: string): string {
  return `${scenario}-rows`;
}

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
export class Scenario {
  readonly name = uniqueName("scenario");
  readonly #subjects: readonly Subject[];
  readonly #place: Place;

  constructor(subjects: readonly Subject[], place: Place) {
    this.#subjects = subjects;
    this.#place = place;
  }

  async create(): Promise<void> {
    await apply(namespace(rowsNamespace(this.name)));
    if (this.#subjects.includes("CapsuleTenant")) {
      await apply(namespaceOf(`${this.name}-capsule`, `${this.name}-blue`));
    }
    await Promise.all(this.#objects.map(apply));
  }

  async change(): Promise<void> {
    await Promise.all(
      this.#subjects.flatMap((subject) =>
        this.#objectsOf(subject).map((object, index) =>
          edit(object, { spec: SUBJECTS[subject].change(this.name, this.#place.table, index) }),
        ),
      ),
    );
  }

  async delete(): Promise<void> {
    await Promise.all(this.#objects.map(remove));
  }

  /** What is there has to be what `expected` says. */
  async expectEnd(expected: unknown): Promise<void> {
    expect(await this.#found()).toEqual(expected);
  }

  /** Waits until what is there does not change any more. @param changed is told of each change. @returns what is there */
  async rested(changed: () => void): Promise<Existence> {
    let before: Existence | undefined;
    return vi.waitFor(
      async () => {
        const found = await this.#found();
        const isSame = isDeepStrictEqual(found, before);
        before = found;
        if (!isSame) changed();
        if (!isSame || awaitsOthers(found)) throw new Error("it still changes");
        return found;
      },
      { timeout: REST_MS, interval: 1_000 },
    );
  }

  /** Nothing may be left of it. */
  expectGone(): Promise<void> {
    return expectNothingOf(this.name, this.#objects, this.#place);
  }

  /** Removes what it did not make by its objects. */
  async cleanUp(): Promise<void> {
    await remove(namespace(rowsNamespace(this.name)));
  }

  #found(): Promise<Existence> {
    return existenceOf(this.name, this.#objects, this.#place);
  }

  get #objects(): Manifest[] {
    return this.#subjects.flatMap((subject) => this.#objectsOf(subject));
  }

  #objectsOf(subject: Subject): Manifest[] {
    return SUBJECTS[subject].first(this.name, this.#place.table);
  }
}

/** Where the operator of a test keeps what it makes, apart from the API server. */
export interface Place {
  state: Pick<StateStore, "files">;
  database: TestDatabase;
  /** The first of the two tables; see {@link createTables}. */
  table: string;
}

/** What an object made, without what the API server and other controllers add. */
interface Made {
  kind: string;
  spec: { hard?: object };
  /** Of a ResourceQuota: what the quota controller counts. */
  counted?: object;
}

/** All that exists because of objects. */
export interface Existence {
  objects: { kind: string; finalizers: unknown; generation: unknown; status: Record<string, unknown> }[];
  made: Made[];
  rows: { first: unknown[]; second: unknown[]; records: unknown[] };
  states: unknown[];
}

/** Whether something follows when the API server enforces a policy, or counts a quota, which may take longer than a look. */
function awaitsOthers({ objects, made }: Existence): boolean {
  const quotas = made.filter(({ kind }) => kind === "ResourceQuota");
  return (
    JSON.stringify(objects).includes('"NotYetEnforced"') ||
    quotas.some(({ spec, counted }) => !isDeepStrictEqual(spec.hard, counted))
  );
}

/**
 * All that exists because of objects that have a name in theirs, in words that do not depend on it.
 *
 * @throws when one of them is not Ready as it is now specified, or is being repaired
 */
export async function existenceOf(name: string, manifests: readonly Manifest[], place: Place): Promise<Existence> {
  const objects = await Promise.all(manifests.map(get));
  for (const object of objects) {
    const ready = findCondition(statusOf(object).conditions, "Ready");
    if (ready?.status !== "True" || ready.observedGeneration !== object.metadata.generation) {
      throw new Error(`${object.kind} ${name} is not ready: ${JSON.stringify(object.status)}`);
    }
    if (findCondition(statusOf(object).conditions, "Reconciling") !== undefined) {
      throw new Error(`${object.kind} ${name} is being reconciled: ${JSON.stringify(object.status)}`);
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
    rows: await rowsOf(name, place),
    states: await statesOf(name, place),
  };
  let text = JSON.stringify(found);
  for (const [index, uid] of [...uids].entries()) text = text.replaceAll(uid, `uid-${index}`);
  text = text.replaceAll(name, "NAME");
  text = text
    .replace(/NAME-pod-[a-z0-9]{5}/g, "NAME-pod-ANY")
    .replace(/(NAME|NAME-capsule|NAME-rows\.NAME-[a-z0-9]+)-[0-9a-f]{12,}/g, "$1-DIGEST");
  return JSON.parse(text);
}

/** Nothing may be left of objects that have a name in theirs. */
export async function expectNothingOf(name: string, manifests: readonly Manifest[], place: Place): Promise<void> {
  for (const object of manifests) expect(await find(object)).toBeUndefined();
  // What the garbage collector takes, the namespaces of Capsule's Tenants, goes later; what ends slowly is on its way.
  const left = (await allMade()).filter((object) => JSON.stringify(object).includes(name));
  expect(left.filter(({ metadata }) => metadata.deletionTimestamp === undefined)).toEqual([]);
  expect(await rowsOf(name, place)).toEqual({ first: [], second: [], records: [] });
  // The proof of a destroy is removed after the object, and stays for a month where the operator ends before that.
  const files = await place.state.files(name);
  expect(files.filter((file) => !file.name.includes("/kindstack-destroyed/"))).toEqual([]);
}

/** The rows whose keys have a name in them, in each of the two tables, and the records of whose they are. */
export async function rowsOf(name: string, { database, table }: Place): Promise<Existence["rows"]> {
  const ours = [`%${name}%`];
  const rows = (table: string) =>
    database.query(`SELECT * FROM ${table} WHERE id LIKE $1 ORDER BY id COLLATE "C"`, ours);
  const records = await database
    .query(`SELECT table_name, key, owner FROM ${RECORDS} WHERE key LIKE $1 ORDER BY 1, 2`, ours)
    .catch(noneWithoutTable);
  return { first: await rows(table), second: await rows(`${table}_2`), records };
}

/** What the states of the stacks have in them. */
async function statesOf(part: string, { state }: Place): Promise<unknown[]> {
  return (await state.files("/stacks/"))
    .filter(({ name }) => name.endsWith(".json") && path.basename(name).includes(part))
    .map(({ text }) => {
      const { checkpoint } = JSON.parse(text) as Checkpoint;
      const { resources = [], pending_operations: pending = [] } = checkpoint.latest ?? {};
      return { resources: resources.map(({ type, urn }) => [type, urn.split("::").pop()]), pending };
    })
    .map((state) => ({ ...state, resources: state.resources.sort(byText) }))
    .sort(byText);
}

/** What has an owner among the objects of any kind. */
export async function allMade(): Promise<LiveObject[]> {
  const lists = await Promise.all(MADE.map((type) => client.list(type, { labelSelector: OWNER_UID_LABEL })));
  return lists.flatMap(({ items }) => items);
}

interface Checkpoint {
  checkpoint: { latest?: { resources?: { type: string; urn: string }[]; pending_operations?: unknown[] } };
}

/** A status without what depends on when things happened. */
function timeless(object: LiveObject): Record<string, unknown> {
  const { conditions = [], stack, ...rest } = statusOf(object);
  return {
    ...rest,
    // The digest has names and UIDs in it.
    stack: { ...stack, declarations: typeof stack?.declarations, resources: stack?.resources?.map(({ id }) => id) },
    conditions: conditions.map(({ type, status, reason }) => [type, status, reason]).sort(byText),
  };
}

function essence({ kind, metadata, spec, status, roleRef, subjects }: LiveObject): object {
  const { name, namespace: place, labels, annotations = {} } = metadata;
  const { "deployment.kubernetes.io/revision": _, ...noted } = annotations;
  // A Pod's spec has a volume of a random name.
  const counted = kind === "ResourceQuota" && { counted: (status as { hard?: object } | undefined)?.hard };
  return { kind, name, place, labels, noted, ...(kind !== "Pod" && { spec, roleRef, subjects }), ...counted };
}

function byText(a: unknown, b: unknown): number {
  return JSON.stringify(a) < JSON.stringify(b) ? -1 : 1;
}

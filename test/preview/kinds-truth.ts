import { setTimeout as delay } from "node:timers/promises";
import fc from "fast-check";
import { expect } from "vitest";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import { objectsAmong } from "../../providers/kubernetes/object";
import { ownerUidOf } from "../../providers/kubernetes/ownership";
import { unescapeReserved } from "../../providers/literal";
import { isScaffolding, nameOf } from "../../src/automation/urn";
import { installKinds } from "../../src/operator/install";
import type { ResourcePlan } from "../../src/plan/resource-plan";
import { ClusterView } from "../../src/preview/cluster-view";
import { preview, selectCandidates } from "../../src/preview/preview";
import { type AnyKind, kindType, ownerOf, parseServed } from "../../stacks/contract/kind";
import { kindOf } from "../../stacks/contract/kind-name";
import { objectId, objectKey, stackName } from "../../stacks/contract/object";
import { runProgram } from "../../stacks/contract/run-program";
import { kinds as builtIn } from "../../stacks/kinds/index";
import { controlPlane } from "../control-plane";
import { TestCluster } from "../providers/kubernetes/test-cluster";
import { TestDatabase } from "../providers/postgres/database";
import { chain } from "./bundle";
import { openTestEngine } from "./engine";

/*
 * Several files with objects of the built-in kinds, and of one whose program runs in the SDK's runtime: rows, Pods, Deployments,
 * namespaces that two tenants may want, pauses and orphans.
 */

const KINDS: readonly AnyKind[] = [...builtIn, chain];
const NAMES = ["PostgresWriter", "Memcached", "PodSet", "Tenant", "Chain"] as const;

/** What each kind is told: its number stands for a field that an update changes. */
interface Wanted {
  number: number;
  /** The table of a row; the namespace of a tenant. */
  place: "a" | "b";
}

export interface Subject {
  kind: (typeof NAMES)[number];
  first: Wanted | undefined;
  second: Wanted | undefined;
  paused: boolean;
  orphan: boolean;
  /** What someone does to its row in between. */
  deed: "nothing" | "edit" | "delete" | "find";
}

const wanted = fc.record({
  number: fc.integer({ min: 1, max: 3 }),
  place: fc.constantFrom("a" as const, "b" as const),
});

export const subjects = fc.array(
  fc.record({
    kind: fc.constantFrom(...NAMES),
    first: fc.option(wanted, { nil: undefined }),
    second: fc.option(wanted, { nil: undefined, freq: 3 }),
    paused: fc.nat(5).map((n) => n === 0),
    orphan: fc.nat(3).map((n) => n === 0),
    deed: fc.constantFrom("nothing" as const, "nothing" as const, "edit" as const, "delete" as const, "find" as const),
  }),
  { minLength: 1, maxLength: 4 },
);

/** So often is an update tried that waits for others. */
const ROUNDS = 60;

type Word = ResourcePlan["operation"] | "nothing";
/** What is in the world, by id. */
type World = ReadonlyMap<string, { uid: string; text: string; owner: string | undefined }>;
/** What a stack has, by the resource's type and name. */
type Had = ReadonlyMap<string, string>;

export async function openKindsStage() {
  const database = new TestDatabase(controlPlane().env);
  await database.open();
  const cluster = await TestCluster.open(controlPlane());
  await installKinds(cluster.client, KINDS);
  const { engine, ...stacks } = await openTestEngine();
  const tables = { a: await database.createStudents(), b: await database.createStudents() };
  let count = 0;

  function manifestOf({ kind, paused, orphan }: Subject, { number, place }: Wanted, name: string, prefix: string) {
    const specs = {
      PostgresWriter: { table: tables[place], name: "alex", age: number, country: "chile" },
      Memcached: { size: number },
      PodSet: { replicas: number },
      Tenant: {
        adminEmail: `${number}@example.com`,
        adminGroups: ["admins"].slice(0, number - 1),
        namespaces: [`${cluster.namespace}-${prefix}${place}`],
      },
      Chain: { text: String(number) },
    };
    const { group, version, scope } = KINDS.find(
      (known) => known.kind === kind && known.group !== "capsule.clastix.io",
    ) as AnyKind;
    const annotations = {
      ...(paused && { "kindstack.dev/paused": "true" }),
      ...(orphan && { "kindstack.dev/deletion-policy": "Orphan" }),
    };
    const metadata = { name, ...(scope === "Namespaced" && { namespace: cluster.namespace }), annotations };
    return { apiVersion: `${group}/${version}`, kind, metadata, spec: specs[kind] };
  }

  async function update(manifest: Manifest, refresh: boolean) {
    const { object } = await cluster.client.apply(manifest, { fieldManager: "kubectl" });
    const kind = kindOf(KINDS, object) as AnyKind;
    const stack = stackName(kind, objectKey(object.metadata));
    const view = await ClusterView.open(cluster.client);
    const identity = await view.identity();
    const recorded = new Set([...(await hadOf(stack)).values()]);
    const context = {
      ...(identity && { cluster: identity }),
      owner: ownerOf(kind, object, object.metadata.uid),
      owned: (await view.owned(kind, object.metadata)) ?? [],
      recorded,
      watched: [],
    };
    const program = async () => runProgram(kind, await parseServed(kind, object), context as never);
    return engine.up(stack, program, { refresh, sdkRuntime: kind.capabilities.sdkRuntime });
  }

  async function hadOf(stack: string): Promise<Had> {
    const state = unescapeReserved(await engine.exportStack(stack));
    const resources = (state?.deployment.resources ?? []).filter(({ urn }) => !isScaffolding(urn));
    return new Map(
      resources.flatMap(({ urn, type, outputs = {} }) => {
        const [made] = objectsAmong([{ outputs }]);
        if (made !== undefined) return [[`${made.manifest.kind} ${nameOf(urn)}`, objectId(made.manifest)]];
        const row = outputs as { table?: string; key?: { id?: string } };
        return type.endsWith("Row") ? [[`Row ${nameOf(urn)}`, `${row.table}/${row.key?.id}`]] : [];
      }),
    );
  }

  async function look(prefix: string): Promise<World> {
    const types = [
      "v1/Namespace",
      "v1/Pod",
      "v1/ConfigMap",
      "apps/v1/Deployment",
      "rbac.authorization.k8s.io/v1/RoleBinding",
    ];
    const lists = types.map(async (type) => {
      const [apiVersion, kind] = [type.slice(0, type.lastIndexOf("/")), type.slice(type.lastIndexOf("/") + 1)];
      return (await cluster.client.list({ apiVersion, kind })).items;
    });
    const objects = (await Promise.all(lists)).flat().filter((object) => objectId(object).includes(prefix));
    const world = new Map<string, { uid: string; text: string; owner: string | undefined }>();
    for (const object of objects) {
      if (object.metadata.deletionTimestamp !== undefined) continue;
      const { uid, labels, annotations } = object.metadata;
      const {
        data,
        spec,
        subjects: bound,
      } = object as LiveObject & { data?: unknown; spec?: { replicas?: number }; subjects?: unknown };
      const text = JSON.stringify({
        data,
        replicas: spec?.replicas,
        bound,
        email: annotations?.adminEmail,
        app: labels?.app,
      });
      world.set(objectId(object), { uid, text, owner: ownerUidOf(object) });
    }
    for (const table of Object.values(tables)) {
      for (const { id, ...values } of await database.query<{ id: string }>(`SELECT * FROM ${table} WHERE id LIKE $1`, [
        `%${prefix}%`,
      ])) {
        world.set(`${table}/${id}`, { uid: "row", text: JSON.stringify(values), owner: undefined });
      }
    }
    return world;
  }

  /** Plays a scenario: what the preview of all files says is what the updates do, each as often as it takes. */
  async function play(all: readonly Subject[], refresh: boolean): Promise<void> {
    const prefix = `k${count++}x`;
    const named = all.map((subject, index) => ({ subject, name: `${prefix}${index}` }));
    for (const { subject, name } of named) {
      // The first of two that want a namespace has it.
      if (subject.first) await update(manifestOf({ ...subject, paused: false }, subject.first, name, prefix), false);
    }
    for (const { subject, name } of named) {
      const key = `${cluster.namespace}/${name}`;
      if (subject.kind !== "PostgresWriter") continue;
      for (const table of Object.values(tables)) {
        if (subject.deed === "edit") await database.query(`UPDATE ${table} SET age = 99 WHERE id = $1`, [key]);
        if (subject.deed === "delete") await database.query(`DELETE FROM ${table} WHERE id = $1`, [key]);
        if (subject.deed === "find")
          await database.query(`INSERT INTO ${table} (id) VALUES ($1) ON CONFLICT DO NOTHING`, [key]);
      }
    }
    const source = (which: "first" | "second") => ({
      objects: named.flatMap(({ subject, name }, index) => {
        const spec = subject[which];
        if (spec === undefined || (which === "first" && subject.second !== undefined)) return [];
        return [{ manifest: manifestOf(subject, spec, name, prefix), file: `${index}.yaml` }];
      }),
      problems: [],
    });
    const before = await look(prefix);
    const report = await preview(
      { engine, cluster: await ClusterView.open(cluster.client), refresh },
      selectCandidates(KINDS, "default", source("second"), source("first")),
    );

    const done = named
      .filter(({ subject }) => subject.first !== undefined || subject.second !== undefined)
      .map(({ subject, name }) => {
        const manifest = manifestOf(subject, (subject.second ?? subject.first) as Wanted, name, prefix);
        const kind = kindOf(KINDS, manifest) as AnyKind;
        return {
          subject,
          name,
          manifest,
          kind,
          stack: stackName(kind, objectKey(manifest.metadata as never)),
          failures: [""],
          isTerminal: false,
        };
      });
    const had = new Map<string, Had>();
    for (const { stack, name } of done) had.set(name, await hadOf(stack));
    // Nothing waits inside an update: what is being deleted is looked at again, and so is what another object gives up.
    for (let round = 0; round < ROUNDS; round++) {
      const open = done.filter(({ failures, isTerminal }) => failures.length > 0 && (round < 3 || !isTerminal));
      if (open.length === 0) break;
      if (round > 0) await delay(300);
      for (const one of open) {
        const { subject, manifest, kind, stack, name } = one;
        if (subject.paused && subject.second !== undefined) {
          one.failures = [];
          continue;
        }
        const result = subject.second
          ? await update(manifest, refresh)
          : await engine.destroy(stack, { release: subject.orphan });
        one.failures = result.failures.map(({ message }) => message);
        one.isTerminal = result.failures.every(({ errorClass }) => errorClass === "terminal");
        if (subject.second === undefined && one.failures.length === 0) {
          const type = await cluster.client.resourceType(kindType(kind).apiVersion, kind.kind);
          await cluster.client.delete(type, name, manifest.metadata.namespace);
        }
      }
    }
    const after = await look(prefix);

    for (const { subject, name, failures, stack } of done) {
      const plan = report.objects.find((object) => object.name === name);
      const context = { name, subject, said: plan?.resources, errors: plan?.errors, failures };
      if (subject.paused && subject.second !== undefined) {
        // What will fail when the pause ends is a failure already.
        const isRefused = (plan?.errors.length ?? 0) > 0;
        expect(plan?.action, JSON.stringify(context)).toBe(isRefused ? "failed" : "paused");
        expect(plan?.notes.join()).toContain("paused");
        continue;
      }
      // Of two that want the same, the preview does not know who comes first.
      if (plan?.errors.some((error) => /only one of them|is also claimed by/.test(error))) continue;
      expect({ failed: plan?.action === "failed", context }).toEqual({ failed: failures.length > 0, context });
      if (failures.length > 0) continue;
      const isDeleted = subject.second === undefined;
      compare(
        plan?.resources ?? [],
        had.get(name) ?? new Map(),
        isDeleted ? new Map() : await hadOf(stack),
        before,
        after,
        isDeleted && subject.orphan,
      );
    }
  }

  return {
    play,
    async close() {
      await stacks.close();
      await cluster.close();
      await database.close();
    },
  };
}

/** Pods are counted: new ones have random names, and which ones go depends on what has started by then. */
function compare(
  said: readonly ResourcePlan[],
  had: Had,
  has: Had,
  before: World,
  after: World,
  orphaned: boolean,
): void {
  const pods: string[] = [];
  for (const name of new Set([...had.keys(), ...has.keys()])) {
    const words = happened(had.get(name), has.get(name), before, after, orphaned);
    const plan = said.find((resource) => `${resource.type} ${resource.name}` === name);
    const context = JSON.stringify({ name, said, had: [...had], has: [...has] });
    if (name.startsWith("Pod ")) pods.push(...words.slice(0, 1));
    else expect(words, context).toContain(plan?.operation ?? "nothing");
  }
  const saidOfPods = said.filter(({ type }) => type === "Pod").map(({ operation }) => operation);
  const isShown = (word: string) => word !== "nothing";
  expect(saidOfPods.sort(), JSON.stringify(said)).toEqual(pods.filter(isShown).sort());
  const unknown = said.filter(
    ({ type, name }) => type !== "Pod" && !had.has(`${type} ${name}`) && !has.has(`${type} ${name}`),
  );
  expect(unknown).toEqual([]);
}

/** The words that are right for what became of a resource. */
function happened(
  from: string | undefined,
  to: string | undefined,
  before: World,
  after: World,
  orphaned: boolean,
): Word[] {
  if (to === undefined) {
    const [lost, left] = [before.get(from ?? ""), after.get(from ?? "")];
    // Where only the state tells, what someone has deleted is orphaned.
    if (orphaned && lost === undefined) return ["orphan", "nothing"];
    if (orphaned) return [lost?.uid === left?.uid ? "orphan" : "delete"];
    if (lost === undefined) return ["delete", "release", "nothing"];
    return [left?.uid === lost.uid && left.owner !== lost.owner ? "release" : "delete"];
  }
  const [was, is] = [before.get(to), after.get(to)];
  if (from !== undefined && from !== to) return before.has(from) ? ["replace"] : ["replace", "create"];
  // Where only the state tells, what someone has deleted is made again by an update.
  if (was === undefined) return from === undefined ? ["create"] : ["create", "update", "nothing"];
  if (is === undefined) return ["nothing"];
  if (was.uid !== is.uid) return ["replace", "create"];
  if (from === undefined) return ["adopt", "hand-over"];
  return was.text === is.text ? ["nothing", "update"] : ["update"];
}

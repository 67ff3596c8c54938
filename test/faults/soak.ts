import fs from "node:fs";
import path from "node:path";
import fc from "fast-check";
import { expect, vi } from "vitest";
import { ApiError, type LiveObject, type Manifest } from "../../providers/kubernetes/client";
import { OWNER_UID_LABEL } from "../../providers/kubernetes/ownership";
import { findCondition } from "../../stacks/contract/condition";
import { type AnyKind, kindName, statusOf } from "../../stacks/contract/kind";
import type { CapsuleTenantSpec } from "../../stacks/kinds/capsule-tenant/schema";
import { isCounted } from "../../stacks/kinds/podset/pods";
import { postgresWriter } from "../../stacks/kinds/postgres-writer/kind";
import type { TenantSpec } from "../../stacks/kinds/tenant/schema";
import { removeAdmission } from "../admission/leftovers";
import { controlPlane } from "../control-plane";
import { untilGone } from "../e2e/conditions";
import { namespace, uniqueName } from "../e2e/manifests";
import { apply, client, create, find, get, remove, removeAllObjects, replaceSpec } from "../e2e/objects";
import { TestOperator } from "../e2e/operator";
import { TestDatabase } from "../providers/postgres/database";
import { ApiProxy } from "./api-proxy";
import { changingKinds, generatedObject } from "./changing-kinds";
import { PostgresProxy } from "./postgres-proxy";
import { allMade, createTables, expectNothingOf, type Place, rowsOf } from "./scenario";
import { folderStore } from "./state-store";

/** Objects of each kind, at most. */
const SLOTS = 4;
/** How long all may take to be as it should once nothing goes wrong any more: back-offs, on a busy machine. */
const SETTLE_MS = 8 * 60_000;
const FAULTS = [
  "API server down",
  "API server refuses",
  "API server cuts",
  "PostgreSQL down",
  "PostgreSQL slow",
  "engine killed",
] as const;
type Fault = (typeof FAULTS)[number] | "operator killed";

const HISTORY_LIMIT = 20;

export type Step =
  | { type: "wanted"; kind: number; slot: number; spec: unknown }
  | { type: "unwanted"; kind: number; slot: number }
  | { type: "fault"; fault: Fault }
  | { type: "heal" };

/** What the operator's process uses when all has settled. */
export interface Usage {
  residentBytes: number;
  heapBytes: number;
  openFiles: number;
}

/** Much is made and changed, less deleted; faults last for some steps each. */
export function stepsOf({ mayKill }: { mayKill: boolean }): fc.Arbitrary<Step> {
  const slot = fc.nat(SLOTS - 1);
  const wanted = changingKinds.map(({ sound }, kind) =>
    fc.record({ type: fc.constant("wanted" as const), kind: fc.constant(kind), slot, spec: sound }),
  );
  const unwanted = fc.record({
    type: fc.constant("unwanted" as const),
    kind: fc.nat(changingKinds.length - 1),
    slot,
  });
  const faults: readonly Fault[] = mayKill ? [...FAULTS, "operator killed", "operator killed"] : FAULTS;
  const fault = fc.record({ type: fc.constant("fault" as const), fault: fc.constantFrom(...faults) });
  return fc.oneof(
    { weight: 10, arbitrary: fc.oneof(...wanted) },
    { weight: 4, arbitrary: unwanted },
    { weight: 2, arbitrary: fault },
    { weight: 3, arbitrary: fc.constant<Step>({ type: "heal" }) },
  );
}

/** An operator behind proxies, objects that come and go, and what goes wrong meanwhile. */
export class Soak {
  readonly #operator = new TestOperator({
    serverPerUpdate: true,
    args: ["--concurrency", "8", "--admission-port", "0"], // without admission, a Tenant's owner gets no rights
  });
  readonly #database = new TestDatabase(controlPlane().env);
  readonly #prefix = uniqueName("soak");
  #api!: ApiProxy;
  #postgres!: PostgresProxy;
  #table = "";
  /** The objects that are to be there, by their names. */
  readonly #wanted = new Map<string, { kind: AnyKind; manifest: Manifest; prerequisites: Manifest[] }>();
  #done: Record<string, number> = {};

  async start(): Promise<void> {
    const { env, kubeconfig } = controlPlane();
    await this.#database.open();
    this.#table = await createTables(this.#database);
    this.#api = await ApiProxy.start(kubeconfig);
    this.#postgres = await PostgresProxy.start({ host: env.PSQL_HOST ?? "", port: Number(env.PSQL_PORT) });
    await apply(namespace(this.#rowsNamespace));
    fs.mkdirSync(this.#operator.directory, { recursive: true });
    await this.#startOperator();
  }

  async stop(): Promise<void> {
    this.#heal();
    await removeAllObjects();
    await remove(namespace(this.#rowsNamespace));
    await this.#operator.dispose();
    await removeAdmission(client);
    this.#api?.close();
    this.#postgres?.close();
    await this.#database.close();
  }

  /** What the operator has logged since the last call. */
  takeLog(): string {
    return this.#operator.takeLog();
  }

  /** How many steps of which sort were taken since the last call. */
  takeDone(): Record<string, number> {
    const done = this.#done;
    this.#done = {};
    return done;
  }

  async take(step: Step): Promise<void> {
    const what = step.type === "fault" ? step.fault : step.type;
    this.#done[what] = (this.#done[what] ?? 0) + 1;
    switch (step.type) {
      case "wanted":
        return this.#want(step.kind, step.slot, step.spec);
      case "unwanted":
        return this.#unwant(this.#nameOf(step.kind, step.slot));
      case "fault":
        return this.#begin(step.fault);
      case "heal":
        return this.#heal();
    }
  }

  /** Ends all faults, waits until all is as the objects say, and looks at what the operator uses then. */
  async untilIdle(): Promise<Usage> {
    this.#heal();
    await vi.waitFor(
      async () => {
        for (const name of this.#wanted.keys()) await this.#push(name);
        await this.#expectAll();
      },
      { timeout: SETTLE_MS, interval: 2_000 },
    );
    return {
      residentBytes: await this.#operator.metric("process_resident_memory_bytes"),
      heapBytes: await this.#operator.metric("nodejs_heap_size_used_bytes"),
      openFiles: await this.#operator.metric("process_open_fds"),
    };
  }

  /** Deletes all objects; nothing may be left. */
  async removeAll(): Promise<void> {
    const objects = [...this.#wanted.values()].map(({ manifest }) => manifest);
    await Promise.all(objects.map(remove));
    for (const object of objects) await untilGone(object);
    await vi.waitFor(() => expectNothingOf(this.#prefix, objects, this.#place), { timeout: 60_000, interval: 500 });
  }

  get #place(): Place {
    return { state: folderStore(this.#operator), database: this.#database, table: this.#table };
  }

  get #rowsNamespace(): string {
    return `${this.#prefix}-rows`;
  }

  #nameOf(kind: number, slot: number): string {
    return `${this.#prefix}-${kind}-${slot}`;
  }

  #startOperator(): Promise<void> {
    return this.#operator.start({
      env: {
        KUBECONFIG: this.#api.writeKubeconfig(this.#operator.directory),
        PSQL_PORT: String(this.#postgres.port),
        PSQL_DBNAME: this.#database.name,
      },
    });
  }

  async #want(index: number, slot: number, spec: unknown): Promise<void> {
    const found = changingKinds[index];
    if (found === undefined) return;
    const name = this.#nameOf(index, slot);
    // All PostgresWriters are in one namespace, as most users have them.
    const isRow = found.kind === postgresWriter;
    const changing = isRow ? { ...found, namespace: () => this.#rowsNamespace } : found;
    const manifest = generatedObject(changing, { name, table: this.#table, spec });
    const prerequisites = isRow ? [] : (found.prerequisites?.(name) ?? []);
    this.#wanted.set(name, { kind: found.kind, manifest, prerequisites });
    await this.#push(name);
  }

  async #unwant(name: string): Promise<void> {
    const wanted = this.#wanted.get(name);
    if (wanted === undefined) return;
    this.#wanted.delete(name);
    await remove(wanted.manifest);
  }

  /**
   * Makes an object, or gives it its spec. What is still on its way out under that name is in the way for now. An object
   * whose spec admission refuses, such as a Tenant with the host name of another one, is wanted no longer.
   */
  async #push(name: string): Promise<void> {
    const wanted = this.#wanted.get(name);
    if (wanted === undefined) return;
    const { manifest, prerequisites } = wanted;
    try {
      for (const prerequisite of prerequisites) await apply(prerequisite);
      const live = await find(manifest);
      if (live === undefined) await create(manifest);
      else if (live.metadata.deletionTimestamp === undefined) await replaceSpec(manifest, manifest.spec);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.message.includes("denied the request")) await this.#unwant(name);
      // A webhook of an operator that is cut off may answer too late: as a user would, it is tried again.
      else if (![404, 409].includes(error.status) && !error.message.includes("failed calling webhook")) throw error;
    }
  }

  async #begin(fault: Fault): Promise<void> {
    switch (fault) {
      case "API server down":
        this.#api.faults = { down: true };
        return this.#api.cut();
      case "API server refuses": {
        let requests = 0;
        this.#api.faults = { refuse: () => (++requests % 3 === 0 ? 503 : undefined) };
        return;
      }
      case "API server cuts": {
        let writes = 0;
        this.#api.faults = { answered: ({ intent }) => intent !== "write" || ++writes % 3 !== 0 };
        return this.#api.cut();
      }
      case "PostgreSQL down":
        this.#postgres.faults = { down: true };
        return this.#postgres.cut();
      case "PostgreSQL slow":
        this.#postgres.faults = { delayMs: 300 };
        return;
      case "engine killed":
        for (const { pid } of this.#operator.engineProcesses()) {
          try {
            process.kill(pid, "SIGKILL");
          } catch {
            // it has ended by itself
          }
        }
        return;
      case "operator killed":
        this.#heal(); // it does not become ready without the API server
        await this.#operator.kill();
        return this.#startOperator();
    }
  }

  #heal(): void {
    this.#api.faults = {};
    this.#postgres.faults = {};
  }

  /** What is in the cluster, the database and the state has to be what the objects ask for. */
  async #expectAll(): Promise<void> {
    const wanted = [...this.#wanted.values()];
    const made = (await allMade()).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    const uids = new Set<string>();
    for (const { kind, manifest } of wanted) {
      const object = await get(manifest);
      const { uid, generation, deletionTimestamp } = object.metadata;
      expect(deletionTimestamp).toBeUndefined();
      const ready = findCondition(statusOf(object).conditions, "Ready");
      expect(ready, manifest.metadata.name).toMatchObject({ status: "True", observedGeneration: generation });
      uids.add(uid);
      const own = made.filter(({ metadata }) => metadata.labels?.[OWNER_UID_LABEL] === uid);
      expect({ name: manifest.metadata.name, ...countKinds(own) }).toEqual({
        name: manifest.metadata.name,
        ...expectedCounts(kind, manifest.spec),
      });
    }
    expect(made.filter(({ metadata }) => !uids.has(metadata.labels?.[OWNER_UID_LABEL] ?? ""))).toEqual([]);
    await this.#expectRows(wanted.filter(({ kind }) => kind === postgresWriter).map(({ manifest }) => manifest));
    this.#expectState(wanted);
  }

  async #expectRows(writers: readonly Manifest[]): Promise<void> {
    const { first, second, records } = await rowsOf(this.#prefix, this.#place);
    const keys = (table: string) =>
      writers
        .filter(({ spec }) => (spec as { table: string }).table === table)
        .map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)
        .sort();
    const idsOf = (rows: unknown[]) => rows.map((row) => (row as { id: string }).id);
    expect(idsOf(first)).toEqual(keys(this.#table));
    expect(idsOf(second)).toEqual(keys(`${this.#table}_2`));
    expect(records).toHaveLength(writers.length);
  }

  /** A stack for each object; a history that is cut; no lock, process or file. */
  #expectState(wanted: readonly { kind: AnyKind }[]): void {
    const operator = this.#operator;
    expect(operator.engineProcesses()).toEqual([]);
    expect(operator.locks()).toEqual([]);
    const stacks = operator.stateFiles("/stacks/").filter((file) => file.endsWith(".json"));
    expect(stacks.length).toBe(wanted.length);
    const histories = new Map<string, number>();
    for (const file of operator.stateFiles("/history/").filter((file) => file.endsWith(".history.json"))) {
      const stack = path.dirname(file);
      histories.set(stack, (histories.get(stack) ?? 0) + 1);
    }
    expect([...histories].filter(([, updates]) => updates > HISTORY_LIMIT + 1)).toEqual([]);
    expect(histories.size).toBeLessThanOrEqual(stacks.length);
  }
}

/** How many of each kind of object there are; of Pods those that count. */
function countKinds(objects: readonly LiveObject[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const object of objects) {
    if (object.kind === "Pod" && !isCounted(object)) continue;
    counts[object.kind] = (counts[object.kind] ?? 0) + 1;
  }
  return counts;
}

/** How many of each kind of object a spec asks for. */
function expectedCounts(kind: AnyKind, spec: unknown): Record<string, number> {
  const present = (counts: Record<string, number>) =>
    Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0));
  switch (kindName(kind)) {
    case "tenants.multitenancy.codereliant.io": {
      const { namespaces, adminGroups = [], userGroups = [] } = spec as TenantSpec;
      const roles = Number(adminGroups.length > 0) + Number(userGroups.length > 0);
      return present({ Namespace: namespaces.length, RoleBinding: namespaces.length * roles });
    }
    case "tenants.capsule.clastix.io": {
      const { limitRanges, networkPolicies, resourceQuotas, additionalRoleBindings } = spec as CapsuleTenantSpec;
      return present({
        Namespace: 1,
        RoleBinding: 2 + (additionalRoleBindings?.length ?? 0),
        LimitRange: limitRanges?.length ?? 0,
        NetworkPolicy: networkPolicies?.length ?? 0,
        ResourceQuota: resourceQuotas?.length ?? 0,
      });
    }
    case "podsets.batch.tutorial.kubebuilder.io":
      return present({ Pod: (spec as { replicas: number }).replicas });
    case "memcacheds.cache.example.com":
      return { Deployment: 1 };
    default:
      return {};
  }
}

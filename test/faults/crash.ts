import fs from "node:fs";
import path from "node:path";
import { afterAll, afterEach, beforeAll, expect, vi } from "vitest";
import { eventually } from "../../src/testing/eventually";
import { controlPlane } from "../control-plane";
import { removeAllObjects } from "../e2e/objects";
import { TestOperator } from "../e2e/operator";
import type { RunningProcess } from "../e2e/processes";
import { TestDatabase } from "../providers/postgres/database";
import { ApiProxy } from "./api-proxy";
import { PostgresProxy } from "./postgres-proxy";
import { createTables, Scenario, type Subject } from "./scenario";
import { databaseStore, folderStore, type StateStore } from "./state-store";

/** What is counted, and so decides when a crash comes. */
export const COUNTED = ["API writes", "SQL statements", "state writes"] as const;
export type Counted = (typeof COUNTED)[number];
export const VICTIMS = ["the operator", "the engine", "both"] as const;
export type Victim = (typeof VICTIMS)[number];
/** On a `postgres://` backend, every statement of the CLI is counted as a write of the state. */
export type Backend = "file" | "postgres";
export const PHASES = ["create", "change", "delete"] as const;
export type Phase = (typeof PHASES)[number];
/** How long a crash may delay an end state: a restart, a back-off, and an update on a busy machine. */
const SETTLE_MS = 120_000;
const MEASUREMENTS = 4;
/** So that what says what is wrong with a scenario comes before the end of the test. */
export const SCENARIO_TIMEOUT_MS = 3 * 3 * SETTLE_MS;

/**
 * A SIGKILL of the victim when so many of what is counted were done since the phase began, or since the crash before: at
 * the first one from then on at which the victim runs. The operator does not hear of that one any more.
 */
export interface Crash {
  victim: Victim;
  counted: Counted;
  after: number;
}

/** The faults in a phase of a scenario. */
export interface Fault {
  /** One after the other. */
  crashes?: readonly Crash[] | undefined;
  /** Its end is not waited for: the next phase begins as soon as the crashes have come. */
  hurried?: boolean;
}

/** How many of each a scenario without faults does in a phase, and its state at the end. */
export interface Sequence {
  counts: Record<Phase, Record<Counted, number>>;
  ends: { create: unknown; change: unknown };
}

/** At what count each crash of a phase came; fewer than were wanted when the phase was at its end before. */
export type Reached = Partial<Record<Phase, number[]>>;

/** An operator behind proxies of the API server and of PostgreSQL that can be killed at any of its writes. */
export class CrashHarness {
  readonly operator: TestOperator;
  readonly database = new TestDatabase(controlPlane().env);
  api!: ApiProxy;
  postgres!: PostgresProxy;
  #table = "";
  #state!: StateStore;
  #counts: Record<Counted, number> = noCounts();
  /** Those that are still to come. */
  #armed: Crash[] = [];
  #reached: number[] = [];
  #recovery: Promise<void> = Promise.resolve();
  /** What is in the work directory of an operator that was never killed. */
  #workFiles: string[] = [];

  /** @param backend where the operator keeps its state */
  constructor(readonly backend: Backend) {
    this.operator = new TestOperator({ serverPerUpdate: true, args: ["--concurrency", "8"] });
  }

  async start(): Promise<void> {
    const { env, kubeconfig } = controlPlane();
    await this.database.open();
    this.#table = await createTables(this.database);
    this.api = await ApiProxy.start(kubeconfig);
    this.postgres = await PostgresProxy.start({ host: env.PSQL_HOST ?? "", port: Number(env.PSQL_PORT) });
    this.api.faults.answered = ({ intent, url }, status) => {
      const counts = intent === "write" && status < 300 && !url.pathname.startsWith("/apis/events.k8s.io/");
      return !counts || this.#count("API writes");
    };
    this.postgres.faults.answered = () => this.#count("SQL statements");
    this.#state = this.backend === "postgres" ? await databaseStore() : folderStore(this.operator);
    fs.mkdirSync(this.#temporary, { recursive: true });
    await this.#startOperator();
    this.#state.watch(() => this.#count("state writes"));
  }

  async stop(): Promise<void> {
    await removeAllObjects();
    await this.operator.dispose();
    this.api?.close();
    this.postgres?.close();
    await this.#state?.close();
    await this.database.close();
  }

  /**
   * Runs a scenario without faults, as the reference for those with faults. One in which an update fails, as it may on a busy
   * machine, does more than others do: a crash that is placed by its counts may not come.
   */
  async measure(subjects: readonly Subject[]): Promise<Sequence> {
    let failure: string | undefined;
    for (let run = 0; run < MEASUREMENTS; run++) {
      const from = this.operator.log.length;
      const sequence = await this.#measureOnce(subjects);
      failure = /^.*"msg":"(update|destroy) failed.*$/m.exec(this.operator.log.slice(from))?.[0];
      if (failure === undefined) return sequence;
    }
    throw new Error(`something fails in each of ${MEASUREMENTS} scenarios without faults: ${failure}`);
  }

  async #measureOnce(subjects: readonly Subject[]): Promise<Sequence> {
    const scenario = this.#scenario(subjects);
    const counts = {} as Sequence["counts"];
    // What comes after the last change are comparisons, which another run may not have.
    const count = (phase: Phase) => {
      counts[phase] = { ...this.#counts };
    };
    this.#counts = noCounts();
    await scenario.create();
    const create = await scenario.rested(() => count("create"));
    this.#counts = noCounts();
    await scenario.change();
    const change = await scenario.rested(() => count("change"));
    this.#counts = noCounts();
    await scenario.delete();
    await patiently(() => scenario.expectGone());
    count("delete");
    await scenario.cleanUp();
    this.#workFiles = fs.readdirSync(this.operator.workDirectory).sort();
    return { counts, ends: { create, change } };
  }

  /** Runs a scenario with these faults, without the phases that are not named; it must end as one without crashes. */
  async run(subjects: readonly Subject[], { ends }: Sequence, faults: Partial<Record<Phase, Fault>>): Promise<Reached> {
    const scenario = this.#scenario(subjects);
    const acts: Record<Phase, [act: () => Promise<void>, end: () => Promise<void>]> = {
      create: [() => scenario.create(), () => scenario.expectEnd(ends.create)],
      change: [() => scenario.change(), () => scenario.expectEnd(ends.change)],
      delete: [() => scenario.delete(), () => scenario.expectGone()],
    };
    const reached: Reached = {};
    try {
      for (const phase of PHASES) {
        const fault = faults[phase];
        if (fault !== undefined) reached[phase] = await this.#phase(fault, ...acts[phase]);
      }
      await scenario.cleanUp();
      await this.expectNothingLeft();
      return reached;
    } catch (error) {
      await this.#recover();
      throw error;
    }
  }

  /** Waits until nothing runs, and looks for what crashes may have left where all objects are gone. */
  async expectNothingLeft(): Promise<void> {
    const { workDirectory } = this.operator;
    await eventually(() => expect(this.operator.engineProcesses()).toEqual([]));
    await eventually(async () => {
      expect(await this.#state.files("/locks/")).toEqual([]);
      expect(await this.#state.files("/stacks/")).toEqual([]);
      expect(fs.readdirSync(workDirectory).sort()).toEqual(this.#workFiles);
      expect(fs.readdirSync(this.#temporary)).toEqual([]);
    });
  }

  async #phase(
    { crashes = [], hurried = false }: Fault,
    act: () => Promise<void>,
    end: () => Promise<void>,
  ): Promise<number[]> {
    this.#counts = noCounts();
    this.#reached = [];
    this.#armed = [...crashes];
    await act();
    await patiently(async () => {
      if (this.#armed.length > 0) await end();
    });
    const hasCrashed = this.#armed.length === 0;
    this.#armed = [];
    if (hurried && hasCrashed) return this.#reached;
    await this.#recovery;
    await patiently(end);
    return this.#reached;
  }

  /** After a scenario that did not end as it should: the next begins with nothing. */
  async #recover(): Promise<void> {
    this.#armed = [];
    await this.#recovery.catch(() => undefined);
    if (!this.operator.runs) await this.#startOperator();
    await removeAllObjects();
  }

  get #temporary(): string {
    return path.join(this.operator.directory, "tmp");
  }

  #scenario(subjects: readonly Subject[]): Scenario {
    return new Scenario(subjects, { state: this.#state, database: this.database, table: this.#table });
  }

  #startOperator(): Promise<void> {
    return this.operator.start({
      env: {
        KUBECONFIG: this.api.writeKubeconfig(this.operator.directory),
        PSQL_PORT: String(this.postgres.port),
        PSQL_DBNAME: this.database.name,
        TMPDIR: this.#temporary,
        ...this.#state.env,
      },
    });
  }

  /** @returns whether the answer may be passed on */
  #count(what: Counted): boolean {
    const count = ++this.#counts[what];
    const [crash] = this.#armed;
    if (crash === undefined || crash.counted !== what || count < crash.after) return true;
    const { victim } = crash;
    if (victim !== "the engine" && !this.operator.runs) return true;
    const clis = victim === "the operator" ? [] : this.operator.engineProcesses();
    if (victim === "the engine" && clis.length === 0) return true;
    this.#armed.shift();
    this.#reached.push(count);
    this.#counts = noCounts();
    this.#kill(victim, clis);
    return victim === "the engine";
  }

  #kill(victim: Victim, clis: readonly RunningProcess[]): void {
    const killed = victim === "the engine" ? undefined : this.operator.kill();
    for (const { pid } of clis) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // it has ended by itself
      }
    }
    if (killed !== undefined) this.#recovery = killed.then(() => this.#startOperator());
    this.#recovery.catch(() => undefined); // awaited at the end of the phase
  }
}

/** Repeats an assertion that asks much of the cluster, not so often that it keeps others from their work. */
function patiently(assertion: () => Promise<void>): Promise<void> {
  return vi.waitFor(assertion, { timeout: SETTLE_MS, interval: 250 });
}

function noCounts(): Record<Counted, number> {
  return { "API writes": 0, "SQL statements": 0, "state writes": 0 };
}

/** A harness for the tests of one file. */
export function useCrashHarness(backend: Backend = "file"): CrashHarness {
  const harness = new CrashHarness(backend);
  beforeAll(() => harness.start(), SCENARIO_TIMEOUT_MS);
  afterEach(({ task }) => {
    const log = harness.operator.takeLog();
    if (task.result?.state === "fail") console.log(`The operator's log during "${task.name}":\n${log}`);
  });
  afterAll(() => harness.stop());
  return harness;
}

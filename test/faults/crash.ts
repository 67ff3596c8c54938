import fs from "node:fs";
import path from "node:path";
import { afterAll, afterEach, beforeAll, expect, inject } from "vitest";
import { eventually } from "../e2e/eventually";
import { removeAllObjects } from "../e2e/objects";
import { build, TestOperator } from "../e2e/operator";
import { TestDatabase } from "../providers/postgres/database";
import { ApiProxy } from "./api-proxy";
import { createTables, Life, type Subject } from "./life";
import { PostgresProxy } from "./postgres-proxy";

/** What is counted, and so decides when a crash comes. */
export const COUNTED = ["API writes", "SQL statements", "state writes"] as const;
export type Counted = (typeof COUNTED)[number];
export const VICTIMS = ["the operator", "the CLI", "both"] as const;
export type Victim = (typeof VICTIMS)[number];
export const PHASES = ["create", "change", "delete"] as const;
export type Phase = (typeof PHASES)[number];

/** A SIGKILL of the victim as soon as so many of what is counted were done in a phase of a life. */
export interface Crash {
  victim: Victim;
  counted: Counted;
  after: number;
}

/** How many of each a life without faults does in a phase, and what is there at the end of it. */
export interface Course {
  counts: Record<Phase, Record<Counted, number>>;
  ends: { create: unknown; change: unknown };
}

/** An operator behind proxies of the API server and of PostgreSQL that can be killed at any of its writes. */
export class CrashHarness {
  readonly operator: TestOperator;
  readonly database = new TestDatabase(inject("cluster").env);
  api!: ApiProxy;
  postgres!: PostgresProxy;
  #table = "";
  #stateWatcher: fs.FSWatcher | undefined;
  #counts: Record<Counted, number> = { "API writes": 0, "SQL statements": 0, "state writes": 0 };
  #armed: Crash | undefined;
  #recovery: Promise<void> | undefined;

  constructor() {
    this.operator = new TestOperator({ args: ["--concurrency", "8"] });
  }

  async start(): Promise<void> {
    build();
    const { env, kubeconfig } = inject("cluster");
    await this.database.open();
    this.#table = await createTables(this.database);
    this.api = await ApiProxy.start(kubeconfig);
    this.postgres = await PostgresProxy.start({ host: env.PSQL_HOST ?? "", port: Number(env.PSQL_PORT) });
    this.api.faults.answered = ({ intent, url }, status) => {
      const counts = intent === "write" && status < 300 && !url.pathname.startsWith("/apis/events.k8s.io/");
      return !counts || this.#count("API writes");
    };
    this.postgres.faults.answered = () => this.#count("SQL statements");
    fs.mkdirSync(this.operator.stateDirectory, { recursive: true });
    fs.mkdirSync(this.#temporary, { recursive: true });
    await this.#startOperator();
    this.#stateWatcher = fs.watch(this.operator.stateDirectory, { recursive: true }, () => this.#count("state writes"));
  }

  async stop(): Promise<void> {
    this.#stateWatcher?.close();
    await removeAllObjects();
    await this.operator.dispose();
    this.api?.close();
    this.postgres?.close();
    await this.database.close();
  }

  /** Lives a life without faults, to know what it comes to. */
  async measure(subjects: readonly Subject[]): Promise<Course> {
    const life = this.#life(subjects);
    const counts = {} as Course["counts"];
    const counted = (phase: Phase) => {
      counts[phase] = this.#counts;
      this.#resetCounts();
    };
    this.#resetCounts();
    await life.create();
    const create = await life.rested();
    counted("create");
    await life.change();
    const change = await life.rested();
    counted("change");
    await life.delete();
    await life.gone();
    counted("delete");
    return { counts, ends: { create, change } };
  }

  /**
   * Lives a life with a crash in some of its phases, each of which must end as one without.
   *
   * @returns the phases in which it did crash
   */
  async live(
    subjects: readonly Subject[],
    { ends }: Course,
    crashes: Partial<Record<Phase, Crash | undefined>>,
  ): Promise<Phase[]> {
    const life = this.#life(subjects);
    const crashed: Phase[] = [];
    const phase = async (name: Phase, act: () => Promise<void>, end: () => Promise<unknown>) => {
      this.#resetCounts();
      this.#armed = crashes[name];
      await act();
      await end();
      if (this.#armed === undefined && crashes[name] !== undefined) crashed.push(name);
      this.#armed = undefined;
      await this.#recovery;
    };
    await phase(
      "create",
      () => life.create(),
      () => life.settled(ends.create),
    );
    await phase(
      "change",
      () => life.change(),
      () => life.settled(ends.change),
    );
    await phase(
      "delete",
      () => life.delete(),
      () => life.gone(),
    );
    return crashed;
  }

  /** Waits until nothing runs, and looks for what crashes may have left where all objects are gone. */
  async expectNothingLeft(): Promise<void> {
    await eventually(() => expect(this.operator.updates()).toEqual([]));
    expect(this.operator.stateFiles("/locks/")).toEqual([]);
    expect(this.operator.stateFiles("/stacks/")).toEqual([]);
    expect(fs.readdirSync(path.join(this.operator.workDirectory, "scratch"))).toEqual([]);
    expect(fs.readdirSync(path.join(this.operator.workDirectory, "processes"))).toEqual([]);
    expect(fs.readdirSync(this.#temporary)).toEqual([]);
  }

  get #temporary(): string {
    return path.join(this.operator.directory, "tmp");
  }

  #life(subjects: readonly Subject[]): Life {
    return new Life(subjects, { operator: this.operator, database: this.database, table: this.#table });
  }

  #startOperator(): Promise<void> {
    return this.operator.start({
      env: {
        KUBECONFIG: this.api.writeKubeconfig(this.operator.directory),
        PSQL_PORT: String(this.postgres.port),
        PSQL_DBNAME: this.database.name,
        TMPDIR: this.#temporary,
      },
    });
  }

  #resetCounts(): void {
    this.#counts = { "API writes": 0, "SQL statements": 0, "state writes": 0 };
  }

  /** @returns whether the answer may go on to who asked */
  #count(what: Counted): boolean {
    const count = ++this.#counts[what];
    const crash = this.#armed;
    if (crash === undefined || crash.counted !== what || count < crash.after) return true;
    this.#armed = undefined;
    this.#crash(crash.victim);
    return crash.victim === "the CLI";
  }

  #crash(victim: Victim): void {
    const clis = victim === "the operator" ? [] : this.operator.updates();
    const killed = victim === "the CLI" ? undefined : this.operator.kill();
    for (const { pid } of clis) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // it has ended by itself
      }
    }
    if (killed !== undefined) this.#recovery = killed.then(() => this.#startOperator());
    this.#recovery?.catch(() => undefined); // awaited at the end of the phase
  }
}

/** A harness for the tests of one file. */
export function useCrashHarness(): CrashHarness {
  const harness = new CrashHarness();
  beforeAll(() => harness.start());
  afterEach(({ task }) => {
    const log = harness.operator.takeLog();
    if (task.result?.state === "fail") console.log(`The operator's log during "${task.name}":\n${log}`);
  });
  afterAll(() => harness.stop());
  return harness;
}

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { Agent, request } from "undici";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { eventually } from "../../src/testing/eventually";
import { controlPlane } from "../control-plane";
import { StateWatch } from "../faults/state-watch";
import { filesUnder } from "../files";
import { uniqueName } from "./manifests";
import { removeAllObjects } from "./objects";
import { childrenOf, processesOf, type RunningProcess } from "./processes";

const ROOT = path.resolve(__dirname, "../..");
export const MAIN = path.join(ROOT, "dist/src/cli/main.js");
/** What only something that hangs takes, also on a slow machine. */
const TIMEOUT_MS = 120_000;

export interface RunSettings {
  /** More words for `kindstack run`. */
  args?: string[];
  /** Variables that differ from the cluster's. */
  env?: Record<string, string>;
  /** `false` when the CRDs are there, and the operator may not install them. */
  installCrds?: boolean;
  /** The command that becomes the operator, before the operator's own: what prepares the process that it runs in. */
  wrapper?: string[];
  /** The compiled command line of another installation. */
  main?: string;
  /** Its Pulumi server exits after each update: for tests that look at processes to see whether an update runs. */
  serverPerUpdate?: true;
}

/**
 * An operator for the tests of one file: it runs before the first and stops, with exit code 0, after the last, when all
 * objects are deleted. When a test fails, what the operator logged meanwhile is printed.
 */
export function useOperator(settings: RunSettings = {}): TestOperator {
  const operator = new TestOperator(settings);
  beforeAll(() => operator.start());
  afterEach(({ task }) => {
    const log = operator.takeLog();
    if (task.result?.state === "fail") console.log(`The operator's log during "${task.name}":\n${log}`);
  });
  afterAll(async () => {
    try {
      await removeAllObjects();
    } finally {
      await operator.dispose();
    }
  });
  return operator;
}

/**
 * Operators that a test file starts itself, in this list: when a test fails, what each has logged is printed, and after the
 * last test they end, when all objects are deleted.
 */
export function useReplicas(): TestOperator[] {
  const replicas: TestOperator[] = [];
  afterEach(({ task }) => {
    if (task.result?.state !== "fail") return;
    for (const [index, replica] of replicas.entries()) console.log(`The log of replica ${index}:\n${replica.log}`);
  });
  afterAll(async () => {
    await removeAllObjects();
    for (const replica of replicas) await replica.dispose();
  });
  return replicas;
}

/** `kindstack run` as a process of its own, against the shared cluster and with a state of its own. */
export class TestOperator {
  /** Holds its state, its work directory and nothing else. */
  readonly directory = path.join(os.tmpdir(), uniqueName("kindstack-e2e"));
  readonly stateDirectory = path.join(this.directory, "state");
  readonly workDirectory = path.join(this.directory, "work");
  readonly #settings: RunSettings;
  #process: ChildProcess | undefined;
  #port = 0;
  #metricsPort = 0;
  /** All that it has printed, of all its runs. */
  #output = "";
  #taken = 0;

  constructor(settings: RunSettings = {}) {
    this.#settings = settings;
  }

  /** Whether it was started, and not ended by the test since. */
  get runs(): boolean {
    return this.#process !== undefined;
  }

  /** What it has logged since it was first started, as text. */
  get log(): string {
    return this.#output;
  }

  /** Starts it and waits until it is ready. The settings are for this run only. */
  async start({ args = [], env = {}, main = MAIN }: RunSettings = {}): Promise<void> {
    if (this.#process !== undefined) throw new Error("the operator runs already");
    fs.mkdirSync(this.stateDirectory, { recursive: true });
    const from = this.#output.length;
    const install = this.#settings.installCrds === false ? [] : ["--install-crds"];
    const idle = this.#settings.serverPerUpdate ? ["--engine-idle", "0.1"] : [];
    const words = ["run", ...install, "--http-port", "0", ...idle, ...(this.#settings.args ?? []), ...args];
    const [program = "", ...rest] = [...(this.#settings.wrapper ?? []), process.execPath, main, ...words];
    const child = spawn(program, rest, {
      cwd: this.directory,
      env: {
        ...process.env,
        ...controlPlane().env,
        PULUMI_BACKEND_URL: `file://${this.stateDirectory}`,
        KINDSTACK_WORK_DIR: this.workDirectory,
        KINDSTACK_LOG_FORMAT: "json",
        ...this.#settings.env,
        ...env,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#process = child;
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        this.#output += text;
      });
    }
    await eventually(() => {
      const output = this.#output.slice(from);
      if (!output.includes("caches are filled")) throw new Error(`the operator is not ready:\n${output}`);
      this.#port = Number(/"http":"[^"]*:(\d+)"/.exec(output)?.[1]);
      this.#metricsPort = Number(/"metrics":"[^"]*:(\d+)"/.exec(output)?.[1]);
    }).catch(async (error: unknown) => {
      if (this.#process === child) await this.kill();
      throw error;
    });
  }

  /** Asks it to stop. @throws when it does not exit with code 0, or leaves a process behind */
  async stop(): Promise<void> {
    const exit = await this.#end("SIGTERM");
    if (exit !== 0) throw new Error(`the operator ended with ${exit} after SIGTERM`);
    const left = this.engineProcesses();
    if (left.length > 0) throw new Error(`the operator left processes behind: ${JSON.stringify(left)}`);
  }

  /** Ends it with no chance to do anything about it. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** Stops it in the middle of what it does, until {@link thaw}; the processes that it has started continue. */
  freeze(): void {
    this.#running.kill("SIGSTOP");
  }

  thaw(): void {
    this.#running.kill("SIGCONT");
  }

  async restart(settings: RunSettings = {}): Promise<void> {
    if (this.#process !== undefined) await this.stop();
    await this.start(settings);
  }

  /** The processes of its engine, whether they still have a parent or not. */
  engineProcesses(): RunningProcess[] {
    return processesOf(`--secrets=${this.workDirectory}/`);
  }

  get pid(): number {
    return this.#running.pid as number;
  }

  children(): RunningProcess[] {
    return childrenOf(this.pid);
  }

  /** Variables for what works on its state: a command, or Pulumi's CLI. */
  get backend(): Record<string, string> {
    const own = { PULUMI_BACKEND_URL: `file://${this.stateDirectory}`, KINDSTACK_WORK_DIR: this.workDirectory };
    return { ...controlPlane().env, ...own, ...this.#settings.env };
  }

  /** Runs a command of Kindstack on its state. @throws with what it printed, when it fails */
  command(...words: string[]): string {
    return kindstack(words, this.backend);
  }

  /** How many updates and destroys it has run since its start. */
  updates(labels: Record<string, string> = {}): Promise<number> {
    return this.metric("kindstack_updates_total", labels);
  }

  /** Waits until it has nothing to do, after so many reconciles since its start. */
  async untilIdle(reconciles = 0): Promise<void> {
    await eventually(async () => {
      expect(await this.metric("controller_runtime_reconcile_total")).toBeGreaterThanOrEqual(reconciles);
      expect(await this.metric("workqueue_depth")).toBe(0);
      expect(await this.metric("controller_runtime_active_workers")).toBe(0);
    });
  }

  /** Makes a change, and waits until it has looked at something since and does nothing any more. */
  async untilLookedAt(change: () => Promise<unknown>): Promise<void> {
    const before = await this.metric("controller_runtime_reconcile_total");
    await change();
    await this.untilIdle(before + 1);
  }

  /** The sum of a metric's samples that carry these labels. */
  async metric(name: string, labels: Record<string, string> = {}): Promise<number> {
    const { text } = await this.get("/metrics");
    const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
    return text
      .split("\n")
      .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
      .filter((line) => wanted.every((label) => line.includes(label)))
      .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
  }

  /** Of a page of its HTTP server. */
  url(page: string): string {
    return `http://127.0.0.1:${this.#port}${page}`;
  }

  async get(page: string): Promise<{ status: number; text: string }> {
    const response = await fetch(this.url(page));
    return { status: response.status, text: await response.text() };
  }

  /** Asks for its protected metrics, which need `--metrics-port`. */
  async scrape(token: string): Promise<{ status: number; text: string }> {
    const { statusCode, body } = await request(`https://127.0.0.1:${this.#metricsPort}/metrics`, {
      dispatcher: new Agent({ connect: { rejectUnauthorized: false } }),
      headers: { authorization: `Bearer ${token}`, connection: "close" },
    });
    return { status: statusCode, text: await body.text() };
  }

  /** The files of its state that have to do with a stack, by a part of their path: the proof of its deletion for a moment. */
  stateFiles(part: string): string[] {
    return filesUnder(this.stateDirectory).filter((file) => file.includes(part));
  }

  /** Of the updates that run now, and of those that were killed. */
  locks(): string[] {
    return this.stateFiles("/locks/");
  }

  /** Makes a change and waits until the updates of so many stacks have begun: each locks its stack first. */
  async untilUpdating(count: number, change: () => Promise<unknown>): Promise<void> {
    const begun = new EventEmitter();
    const locked = new Set<string>();
    const watch = new StateWatch(this.stateDirectory, (file) => {
      if (file.includes("/locks/")) locked.add(path.dirname(file));
      if (locked.size >= count) begun.emit("all");
    });
    try {
      await Promise.all([change(), once(begun, "all", { signal: AbortSignal.timeout(TIMEOUT_MS) })]);
    } finally {
      watch.close();
    }
  }

  /** What it has logged since the last call. */
  takeLog(): string {
    const log = this.#output.slice(this.#taken);
    this.#taken = this.#output.length;
    return log;
  }

  /** Stops it and removes its state. */
  async dispose(): Promise<void> {
    try {
      if (this.#process !== undefined) await this.stop();
    } finally {
      fs.rmSync(this.directory, { recursive: true, force: true });
    }
  }

  get #running(): ChildProcess {
    if (this.#process === undefined) throw new Error("the operator does not run");
    return this.#process;
  }

  async #end(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.#running;
    this.#process = undefined;
    if (child.exitCode !== null) return child.exitCode;
    const exited = once(child, "exit") as Promise<[number | null]>;
    child.kill(signal);
    const deadline = setTimeout(() => child.kill("SIGKILL"), TIMEOUT_MS);
    const [code] = await exited;
    clearTimeout(deadline);
    return code;
  }
}

/** Runs a command of Kindstack against this file's cluster. @throws with what it printed, when it fails */
export function kindstack(args: string[], env: Record<string, string> = {}): string {
  return execFileSync(process.execPath, [MAIN, ...args], {
    encoding: "utf8",
    env: { ...process.env, KUBECONFIG: controlPlane().kubeconfig, ...env },
    stdio: "pipe",
  });
}

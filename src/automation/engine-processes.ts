import { randomUUID } from "node:crypto";
import { RetryableError } from "../../providers/errors";
import { EngineProcess, type EngineProcessOptions } from "./engine-process";
import { PluginHost, type PluginHostTiming } from "./plugin-host";
import { type EngineUsage, ttlArguments } from "./rpc";

export interface EngineTiming extends PluginHostTiming {
  /** A process without work ends after this long. */
  idleMs?: number;
  pingMs?: number;
  /** A process is succeeded after so many operations. */
  operationsPerProcess?: number;
}

type EngineProcessesOptions = Omit<EngineProcessOptions, "pingMs"> & EngineTiming;

interface EngineCounts {
  operations: number;
  /** How long operations took in the engine, by phase. */
  phaseSeconds: Record<string, number>;
  /** Processes that took over after the limit of operations. */
  successors: number;
  crashes: number;
}

const IDLE_MS = 60_000;
/** For a process that was only started to see whether one can be. */
const UNUSED_IDLE_MS = 1_000;
/** What Pulumi's engine keeps of an operation for ever is about 70 KiB and a descriptor. */
const OPERATIONS = 300;
/** After the second crash in a row, and twice as long after each further one. */
const BACK_OFF_MS = 500;
const MAX_BACK_OFF_MS = 30_000;

/**
 * The process that runs new operations, and former processes with running ones: Pulumi's engine keeps some memory of each
 * operation, so a new process takes over after some hundred operations, and no operation waits for the change.
 *
 * A process is started for the first operation. It ends when there was none for a while, when this process ends in whatever
 * way, and when its time to live is not renewed.
 */
export class EngineProcesses {
  readonly counts: EngineCounts = { operations: 0, phaseSeconds: {}, successors: 0, crashes: 0 };
  readonly plugins: PluginHost;
  /** Names this process in the locks of its operations. */
  readonly #session = randomUUID();
  readonly #all = new Set<EngineProcess>();
  #current: EngineProcess | undefined;
  #idle: NodeJS.Timeout | undefined;
  #usage: Promise<EngineUsage> | undefined;
  #crashesInARow = 0;
  /** Whether the passphrase is that of the states; to see that takes a fifth of a second. */
  #isChecked = false;
  /** On the clock of `performance.now()`. */
  #notBefore = 0;
  #allowedUntil: number | undefined;

  constructor(private readonly options: EngineProcessesOptions) {
    this.plugins = new PluginHost(options);
  }

  /**
   * Works with the process that takes new requests.
   *
   * @throws what {@link EngineProcess.ready} does; RetryableError `NoEngine` soon after several crashes in a row
   */
  async use<T>(work: (process: EngineProcess) => Promise<T>, { operates = false } = {}): Promise<T> {
    const process = this.#running();
    if (operates) this.counts.operations++;
    await process.ready;
    this.#isChecked = true;
    clearTimeout(this.#idle);
    try {
      const result = await work(process);
      if (!process.isOver) this.#crashesInARow = 0; // an operation reports the end of its process in its result
      return result;
    } finally {
      this.#settle(process);
    }
  }

  count(phasesMs: Readonly<Record<string, number>> = {}): void {
    const { phaseSeconds } = this.counts;
    for (const [phase, ms] of Object.entries(phasesMs)) phaseSeconds[phase] = (phaseSeconds[phase] ?? 0) + ms / 1000;
  }

  /** What the processes have in use, all together. Who asks before the answer is there gets the same one. */
  usage(): Promise<EngineUsage> {
    this.#usage ??= this.#ask().finally(() => {
      this.#usage = undefined;
    });
    return this.#usage;
  }

  async #ask(): Promise<EngineUsage> {
    const total = { ...NOTHING };
    for (const process of [...this.#all, ...(this.plugins.process === undefined ? [] : [this.plugins.process])]) {
      const { memoryBytes, descriptors } = await process.usage().catch(() => NOTHING);
      total.memoryBytes += memoryBytes;
      total.descriptors += descriptors;
    }
    return total;
  }

  allow(ms: number): void {
    this.#allowedUntil = performance.now() + ms;
    for (const process of this.#all) process.allow(ms);
    this.plugins.allow(ms);
  }

  async close(): Promise<void> {
    clearTimeout(this.#idle);
    await Promise.all([...this.#all].map((process) => process.stop()));
    await this.plugins.close();
  }

  #running(): EngineProcess {
    const share = this.options.operationsPerProcess ?? OPERATIONS;
    const former = this.#current;
    if (former?.isOver === false && former.operations < share) return former;
    const waitMs = this.#notBefore - performance.now();
    if (waitMs > 0) {
      const message = `Pulumi's engine ended ${this.#crashesInARow} times in a row; it is started again in ${Math.ceil(waitMs / 1000)} s`;
      throw new RetryableError("NoEngine", message);
    }
    if (former?.isOver === false) this.counts.successors++;
    const process = this.#start();
    this.#current = process;
    if (former !== undefined) this.#settle(former);
    return process;
  }

  #start(): EngineProcess {
    const args = [
      ...this.options.args,
      `--session=${this.#session}`,
      ...(this.#isChecked ? [] : ["--check-passphrase"]),
      ...ttlArguments(this.#allowedUntil),
    ];
    const pluginHost = () => this.plugins.address();
    const process = new EngineProcess({ ...this.options, args, pluginHost }, ({ crashed }) => {
      this.#all.delete(process);
      if (crashed) this.#backOff();
    });
    this.#all.add(process);
    return process;
  }

  #backOff(): void {
    this.counts.crashes++;
    const exponent = this.#crashesInARow++ - 1;
    const ms = exponent < 0 ? 0 : Math.min(BACK_OFF_MS * 2 ** exponent, MAX_BACK_OFF_MS);
    this.#notBefore = performance.now() + ms;
  }

  /** Ends a process that has reached the limit of operations, or has been idle for a while. */
  #settle(process: EngineProcess): void {
    if (!process.isIdle || process.isOver) return;
    if (process !== this.#current) {
      void process.stop();
      return;
    }
    const idleMs = process.operations === 0 ? UNUSED_IDLE_MS : (this.options.idleMs ?? IDLE_MS);
    clearTimeout(this.#idle);
    // The process may just be reporting its usage, which is no reason to keep it.
    const idle = setTimeout(() => void (process.isIdle ? process.stop() : idle.refresh()), idleMs).unref();
    this.#idle = idle;
  }
}

const NOTHING: EngineUsage = { memoryBytes: 0, descriptors: 0 };

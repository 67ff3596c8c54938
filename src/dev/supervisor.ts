import { setTimeout as delay } from "node:timers/promises";
import { errorMessageOf } from "../../providers/errors";
import { type Layout, logFileOf } from "./layout";
import { lastLines, type SpawnOptions, spawnDetached } from "./process";
import { type ProcessRecord, writeRecord } from "./record";

/** A process of the cluster: how it is started, how it tells that it is well, how it is stopped. */
export interface Component
  extends Pick<ProcessRecord, "name" | "port" | "tier" | "stopSignal" | "stopSeconds">,
    Pick<SpawnOptions, "command" | "args" | "uid" | "gid" | "cwd"> {
  /** Added to the environment of this process. */
  env?: Readonly<Record<string, string>>;
  /** Throws, or says false, until the component can be used. */
  isHealthy(): Promise<boolean>;
  /** How long it may take until it is healthy, in seconds. */
  startSeconds: number;
  /** Called when the process exists, long before it is healthy. */
  onSpawn?: (logFile: string) => void;
}

/** A component ended, or never became healthy. The message ends with the last lines of its log. */
export class ComponentFailedError extends Error {
  override readonly name = "ComponentFailedError";

  constructor(
    readonly component: string,
    what: string,
    logFile: string,
  ) {
    super(`${component} ${what}. The end of ${logFile}:\n${lastLines(logFile, LOG_LINES).replace(/^/gm, "  ")}`);
  }
}

const LOG_LINES = 15;
const POLL_MS = 100;

/** Starts components, remembers them in `cluster.json` and notices when one ends. */
export class Supervisor {
  readonly #layout: Layout;
  #processes: ProcessRecord[] = [];
  #fail!: (failure: ComponentFailedError) => void;
  #stopping = false;

  constructor(layout: Layout) {
    this.#layout = layout;
  }

  get processes(): readonly ProcessRecord[] {
    return this.#processes;
  }

  /** Fulfilled when the first component exits unexpectedly. */
  readonly failure = new Promise<ComponentFailedError>((resolve) => {
    this.#fail = resolve;
  });

  /** To be called before the components are stopped. */
  expectEnd(): void {
    this.#stopping = true;
  }

  /** Starts a component and waits until it is healthy. @throws ComponentFailedError */
  async start(component: Component, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { name, port, tier, stopSignal, stopSeconds } = component;
    const logFile = logFileOf(this.#layout, name);
    const { pid, startedAt, exited } = await spawnDetached({
      ...component,
      env: { ...process.env, ...component.env },
      logFile,
    });
    const record = { name, pid, startedAt, port, tier, stopSignal, stopSeconds };
    this.#remember([...this.#processes, record]);
    component.onSpawn?.(logFile);

    let ended: string | undefined;
    let started = false;
    void exited.then((how) => {
      ended = how;
      if (started && !this.#stopping) this.#fail(new ComponentFailedError(name, `ended (${how})`, logFile));
    });
    const deadline = Date.now() + component.startSeconds * 1000;
    for (let last = ""; ; ) {
      // Someone else may answer on this port: only a living process counts.
      started = await component.isHealthy().catch((error) => {
        last = `: ${errorMessageOf(error)}`;
        return false;
      });
      signal.throwIfAborted();
      if (ended !== undefined) {
        this.#remember(this.#processes.filter((other) => other !== record));
        throw new ComponentFailedError(name, `exited at start (${ended})`, logFile);
      }
      if (started) return;
      if (Date.now() > deadline) {
        throw new ComponentFailedError(name, `is not healthy after ${component.startSeconds} s${last}`, logFile);
      }
      await delay(POLL_MS);
    }
  }

  #remember(processes: ProcessRecord[]): void {
    this.#processes = processes;
    writeRecord(this.#layout, processes);
  }
}

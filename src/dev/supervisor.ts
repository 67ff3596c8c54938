import type { SpawnOptions } from "node:child_process";
import fs from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { errorMessageOf } from "../../providers/errors";
import { type Layout, logFileOf } from "./layout";
import { isRunning, lastLines, type ProcessIdentity, spawnDetached, stopProcess } from "./process";

/** A process of the cluster: how it is started, how its health is checked, how it is stopped. */
export interface Component extends Pick<SpawnOptions, "uid" | "gid"> {
  name: string;
  command: string;
  args: readonly string[];
  /** Added to the environment of this process. */
  env?: Readonly<Record<string, string>>;
  port: number;
  /** Processes of a higher tier need those below, so they are stopped first. */
  tier: number;
  /** `SIGTERM` by default. */
  stopSignal?: NodeJS.Signals;
  /** How long it may take to end when asked, in seconds; 10 by default. */
  stopSeconds?: number;
  /** Throws or returns false until the component can be used. */
  isHealthy(): Promise<boolean>;
  /** Called when the process exists, long before it is healthy. */
  onSpawn?: (logFile: string) => void;
}

/** A process in `cluster.json`: other commands find and stop it by this record. */
type ProcessRecord = ProcessIdentity & Pick<Component, "name" | "port" | "tier" | "stopSignal" | "stopSeconds">;

/** Tells what is done, in a line. */
export type Log = (message: string) => void;

/** A component ended, or never became healthy. The message ends with the last lines of its log. */
export class ComponentFailedError extends Error {
  override readonly name = "ComponentFailedError";

  constructor(component: string, what: string, logFile: string) {
    super(`${component} ${what}. The end of ${logFile}:\n${lastLines(logFile, LOG_LINES).replace(/^/gm, "  ")}`);
  }
}

const LOG_LINES = 15;
const POLL_MS = 100;
const START_SECONDS = 60;

/** Starts components, remembers them in `cluster.json` and notices when one ends. */
export class Supervisor {
  readonly #failure = Promise.withResolvers<ComponentFailedError>();
  /** Fulfilled when the first healthy component exits. */
  readonly failure = this.#failure.promise;

  /** @param signal ends the start of a component */
  constructor(
    readonly layout: Layout,
    readonly signal: AbortSignal,
  ) {}

  /** Starts a component and waits until it is healthy. */
  async start({ command, args, isHealthy, onSpawn, env, uid, gid, ...record }: Component): Promise<ProcessIdentity> {
    const { layout, signal } = this;
    const { name } = record;
    signal.throwIfAborted();
    const logFile = logFileOf(layout, name);
    const options = { cwd: layout.directory, env: { ...process.env, ...env }, uid, gid };
    const { exited, ...identity } = await spawnDetached(command, args, logFile, options);
    const others = (readRecord(layout) ?? []).filter((process) => process.name !== name);
    writeRecord(layout, [...others, { ...record, ...identity }]);
    onSpawn?.(logFile);

    let ended: string | undefined;
    void exited.then((how) => {
      ended = how;
    });
    const deadline = Date.now() + START_SECONDS * 1000;
    for (let reason = ""; ; await delay(POLL_MS)) {
      const healthy = await isHealthy().catch((error: unknown) => {
        reason = `: ${errorMessageOf(error)}`;
        return false;
      });
      signal.throwIfAborted();
      // Another program may answer on this port, so the process must also be alive.
      if (ended !== undefined) throw new ComponentFailedError(name, `exited at start (${ended})`, logFile);
      if (healthy) break;
      if (Date.now() > deadline) {
        throw new ComponentFailedError(name, `is not healthy after ${START_SECONDS} s${reason}`, logFile);
      }
    }
    void exited.then((how) => this.#failure.resolve(new ComponentFailedError(name, `ended (${how})`, logFile)));
    return identity;
  }
}

/** The processes that were last started in a directory; `undefined` when it holds no cluster. */
export function readRecord(layout: Layout): ProcessRecord[] | undefined {
  if (!fs.existsSync(layout.record)) return undefined;
  return (JSON.parse(fs.readFileSync(layout.record, "utf8")) as { processes: ProcessRecord[] }).processes;
}

/** By rename, so that a crash leaves the old or the new one. */
function writeRecord(layout: Layout, processes: readonly ProcessRecord[]): void {
  const aside = `${layout.record}.new`;
  fs.writeFileSync(aside, `${JSON.stringify({ processes }, undefined, 2)}\n`, { mode: 0o600 });
  fs.renameSync(aside, layout.record);
}

/** Stops what still runs in a directory, tier by tier from the highest, and forgets it. Says whether anything ran. */
export async function stopRecorded(layout: Layout, log: Log): Promise<boolean> {
  const processes = readRecord(layout) ?? [];
  const running = processes.filter(isRunning);
  const tiers = [...Map.groupBy(processes, ({ tier }) => tier)].sort(([one], [other]) => other - one);
  for (const [, members] of tiers) {
    const stops = members.map((process) => {
      if (running.includes(process)) log(`stopping ${process.name}`);
      return stopProcess(process, process.stopSignal ?? "SIGTERM", process.stopSeconds ?? 10);
    });
    await Promise.all(stops);
  }
  writeRecord(layout, []);
  return running.length > 0;
}

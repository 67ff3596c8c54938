import fs from "node:fs";
import type { Layout } from "./layout";
import { isRunning, type ProcessIdentity, stopProcess } from "./process";

/** What `cluster.json` remembers of a process, so that another command can see and stop it. */
export interface ProcessRecord extends ProcessIdentity {
  name: string;
  port: number;
  /** Processes of a higher tier need those below, so they are stopped first. */
  tier: number;
  stopSignal: NodeJS.Signals;
  /** How long it may take to end when asked, in seconds. */
  stopSeconds: number;
}

/** The processes that were last started in a directory; `undefined` when it holds no cluster. */
export function readRecord(layout: Layout): ProcessRecord[] | undefined {
  let text: string;
  try {
    text = fs.readFileSync(layout.record, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  return (JSON.parse(text) as { processes: ProcessRecord[] }).processes;
}

/** Written at every start of a process, by rename, so that a crash leaves the old or the new one. */
export function writeRecord(layout: Layout, processes: readonly ProcessRecord[]): void {
  const aside = `${layout.record}.new`;
  fs.writeFileSync(aside, `${JSON.stringify({ processes }, undefined, 2)}\n`, { mode: 0o600 });
  fs.renameSync(aside, layout.record);
}

/** Stops what of these still runs, tier by tier from the highest, and forgets all of them. */
export async function stopRecorded(
  layout: Layout,
  processes: readonly ProcessRecord[],
  log: (message: string) => void,
): Promise<void> {
  const tiers = [...new Set(processes.map(({ tier }) => tier))].sort((one, other) => other - one);
  for (const tier of tiers) {
    await Promise.all(
      processes
        .filter((process) => process.tier === tier)
        .map((process) => {
          if (isRunning(process)) log(`stopping ${process.name}`);
          return stopProcess(process, process.stopSignal, process.stopSeconds);
        }),
    );
  }
  writeRecord(layout, []);
}

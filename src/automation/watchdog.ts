import { type ChildProcess, spawn } from "node:child_process";
import { signalGroup } from "./command";
import type { Workspace } from "./workspace";

export interface WatchdogOptions {
  workspace: Workspace;
  /** How long from now a process may run when this one says nothing more, in milliseconds. */
  allowedMs: () => number;
  log: { error(fields: object, message: string): void };
}

/**
 * Waits for lines, each the seconds until the next one must be there. When it is not, or when nobody is left who could
 * write one, kills the process group of every record in a directory.
 */
const SCRIPT = `
limit=$1
while limit=$(timeout "$limit" sh -c 'read -r limit && echo "$limit"'); do :; done
for record in "$2"/*; do kill -s KILL -- "-\${record##*/}"; done 2>/dev/null`;

/**
 * Ends the CLI processes of this process when it cannot do so itself, because it is frozen or was killed: they would go
 * on, or wait for answers, while another replica already updates their stacks.
 *
 * It is a small shell that runs only while a CLI does, and has to be told again and again how long that may take.
 */
export class Watchdog {
  readonly #options: WatchdogOptions;
  #shell: ChildProcess | undefined;
  #processes = 0;

  constructor(options: WatchdogOptions) {
    this.#options = options;
  }

  /** The workspace, whose processes are watched over from now on. */
  get workspace(): Workspace {
    const { workspace } = this.#options;
    return {
      ...workspace,
      recordProcess: (pid) => {
        const forget = workspace.recordProcess(pid);
        this.#processes++;
        if (this.#shell === undefined) this.#start();
        return () => {
          forget();
          this.#processes--;
          if (this.#processes === 0) this.#stop();
        };
      },
    };
  }

  /** Allows what runs now to run for so long. */
  feed(ms: number): void {
    this.#shell?.stdin?.write(`${seconds(ms)}\n`);
  }

  #start(): void {
    const { workspace, allowedMs, log } = this.#options;
    const words = ["-c", SCRIPT, "kindstack-watchdog", seconds(allowedMs()), workspace.processDirectory];
    const shell = spawn("/bin/sh", words, { detached: true, stdio: ["pipe", "ignore", "ignore"] });
    this.#shell = shell;
    shell.once("error", (error) => log.error({ err: error }, "running updates are not watched over"));
    shell.once("exit", () => {
      if (this.#shell !== shell) return;
      log.error({}, "the watchdog of running updates has ended, and they with it");
      this.#shell = undefined;
      if (this.#processes > 0 && allowedMs() > 0) this.#start(); // what begins from now on is watched as well
    });
    shell.stdin.on("error", () => undefined); // it has ended, as the event above says
  }

  #stop(): void {
    const shell = this.#shell;
    this.#shell = undefined;
    signalGroup(shell?.pid, "SIGKILL"); // before its input ends, upon which it would kill
    shell?.stdin?.destroy();
  }
}

function seconds(ms: number): string {
  return (Math.max(1, ms) / 1000).toFixed(3); // to timeout(1), 0 means for ever
}

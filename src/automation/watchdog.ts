import { type ChildProcess, spawn } from "node:child_process";
import { signalGroup } from "./command";

/**
 * Reads lines: the seconds until the next one must be there, and the process groups that run. When no line arrives in
 * time, or the one who writes them is gone, kills the groups of the last one.
 */
const SCRIPT = `
line=$*
while set -- $line; limit=$1; shift; groups=$*
      line=$(timeout "$limit" sh -c 'read -r line && echo "$line"'); do :; done
for group in $groups; do kill -s KILL -- "-$group"; done 2>/dev/null`;

/** To timeout(1), 0 means for ever. */
const FOR_EVER = "0";

/**
 * Ends the CLI processes of this process when it cannot do so itself, because it is frozen or was killed: they would
 * hold their locks, or write a state that another replica already works on.
 *
 * It is a small shell that runs only while a CLI does.
 */
export class Watchdog {
  readonly #log: { error(fields: object, message: string): void };
  readonly #groups = new Set<number>();
  #shell: ChildProcess | undefined;
  /** On the clock of `performance.now()`. */
  #allowedUntil: number | undefined;

  constructor(log: { error(fields: object, message: string): void }) {
    this.#log = log;
  }

  /** Watches a process group until the returned function is called. */
  watch(pid: number): () => void {
    this.#groups.add(pid);
    this.#tell();
    return () => {
      this.#groups.delete(pid);
      this.#tell();
    };
  }

  /** Allows what runs now to run for so long. */
  feed(ms: number): void {
    this.#allowedUntil = performance.now() + ms;
    this.#tell();
  }

  close(): void {
    this.#groups.clear();
    this.#stop();
  }

  #tell(): void {
    if (this.#groups.size === 0) this.#stop();
    else if (this.#shell === undefined) this.#start();
    else this.#shell.stdin?.write(`${this.#state}\n`);
  }

  get #state(): string {
    const leftMs = this.#allowedUntil === undefined ? undefined : this.#allowedUntil - performance.now();
    const limit = leftMs === undefined ? FOR_EVER : (Math.max(1, leftMs) / 1000).toFixed(3);
    return [limit, ...this.#groups].join(" ");
  }

  #start(): void {
    const words = ["-c", SCRIPT, "kindstack-watchdog", ...this.#state.split(" ")];
    const shell = spawn("/bin/sh", words, { detached: true, stdio: ["pipe", "ignore", "ignore"] });
    this.#shell = shell;
    shell.once("error", (error) => this.#log.error({ err: error }, "failed to start the watchdog of running updates"));
    shell.once("exit", () => {
      if (this.#shell !== shell) return;
      this.#log.error({}, "the watchdog exited, and running updates were killed");
      this.#shell = undefined; // what begins from now on is watched again
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

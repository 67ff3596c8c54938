import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { runCommand } from "./command";
import type { Command, CommandError, CommandResult, Pulumi } from "./pulumi";
import { withScratch } from "./scratch";
import { Watchdog } from "./watchdog";

export interface PulumiProcessOptions {
  /** The program that is run. */
  file: string;
  cwd: string;
  environment: NodeJS.ProcessEnv;
  /** For temporary folders of updates. */
  scratchDirectory: string;
  log: { error(fields: object, message: string): void };
}

/** The CLI's own exit code (`cmd/pulumi/cmd/exit_codes.go`). */
const EXIT_STACK_NOT_FOUND = 6;

/** Runs each command in a process of the stock CLI. */
export class PulumiCli implements Pulumi {
  readonly #options: PulumiProcessOptions;
  readonly #watchdog: Watchdog;

  constructor(options: PulumiProcessOptions) {
    this.#options = options;
    this.#watchdog = new Watchdog(options.log);
  }

  run({ args, timeoutMs, signal, backendUrl, savesOnce, events }: Command): Promise<CommandResult> {
    const { file, cwd, environment, scratchDirectory } = this.#options;
    return withScratch(scratchDirectory, "events", async (scratch) => {
      const eventLog = join(scratch, "events.ndjson");
      const flags = [...(events ? ["--event-log", eventLog] : []), "--non-interactive", "--color", "never"];
      let forget = () => {};
      const result = await runCommand(file, [...args, ...flags], {
        cwd,
        env: {
          // A process that lives for less than a second spends a tenth of it on memory that it could just leave.
          GOGC: "400",
          ...environment,
          ...(backendUrl !== undefined && { PULUMI_BACKEND_URL: backendUrl }),
          ...(savesOnce && { PULUMI_SKIP_CHECKPOINTS: "true" }),
        },
        timeoutMs,
        signal,
        onStart: (pid) => {
          forget = this.#watchdog.watch(pid);
        },
      }).finally(() => forget());
      const told = await readFile(eventLog, "utf8").catch(() => "");
      const error = errorOf(result.exitCode, result.stderr, told);
      return { ...result, events: told, ...(error && { error }) };
    });
  }

  owns(): boolean {
    return false;
  }

  allow(ms: number): void {
    this.#watchdog.feed(ms);
  }

  async close(): Promise<void> {
    this.#watchdog.close();
  }
}

/** A lock has no exit code of its own; but then the command has not begun, and there is no event that quotes a user. */
function errorOf(exitCode: number, stderr: string, events: string): CommandError | undefined {
  if (exitCode === 0) return undefined;
  const isLocked = events === "" && /^error: the stack is currently locked by /m.test(stderr);
  const kind = exitCode === EXIT_STACK_NOT_FOUND ? "stackNotFound" : isLocked ? "locked" : "other";
  return { kind, message: stderr.trim() };
}

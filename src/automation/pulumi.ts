import { ClassifiedError, errorMessageOf, RetryableError } from "../../providers/errors";
import type { ProcessResult } from "./interruption";

/** Where and how Pulumi's commands run. */
export interface Workspace {
  pulumi: Pulumi;
  backendUrl: string;
  /** The configuration of every stack: the salt of the passphrase or the key of the key service, nothing else. */
  configFile: string;
  /** An empty stack's checkpoint. */
  checkpointTemplate: string;
  /** For temporary folders of updates. */
  scratchDirectory: string;
}

/** One command of Pulumi, with the arguments that the CLI takes. */
export interface Command {
  args: readonly string[];
  /** After this long it is interrupted. */
  timeoutMs: number;
  signal?: AbortSignal | undefined;
  /** Another backend than the workspace's. */
  backendUrl?: string | undefined;
  /** Save the state at the end, not after each step. */
  savesOnce?: boolean | undefined;
  /** Keep the engine's events. */
  events?: boolean | undefined;
}

export interface CommandResult extends ProcessResult {
  /** The engine's events as newline-delimited JSON; the last one may be torn. */
  events: string;
  /** The command's own error, apart from what the engine told about resources, which may quote what users wrote. */
  error?: CommandError;
}

export interface CommandError {
  kind: "locked" | "stackNotFound" | "cancelled" | "other";
  message: string;
}

/** Runs commands of Pulumi: in a warm process ({@link PulumiServer}), or in a process each ({@link PulumiCli}). */
export interface Pulumi {
  /** @throws RetryableError when the fence of the work that asks has come down; what keeps a process from starting */
  run(command: Command): Promise<CommandResult>;
  /** Whether a process that has this number is this one's, and does not work on any stack by itself. */
  owns(pid: number): boolean;
  /** Commands may run for so long from now, and then end unless this is called again; without any call, for ever. */
  allow(ms: number): void;
  /** Ends what runs. */
  close(): Promise<void>;
}

/** What every command needs. */
export interface PulumiOptions {
  workspace: Workspace;
  /** After this long a command is interrupted. */
  timeoutMs: number;
}

const READS_CONFIGURATION: readonly string[] = ["up", "preview"];

/**
 * Runs one command in the workspace, with this process's providers.
 *
 * @throws RetryableError `NoPulumi` when it could not be started; what {@link Pulumi.run} throws
 */
export async function runPulumi(
  { workspace, timeoutMs }: PulumiOptions,
  args: readonly string[],
  call: Omit<Command, "args" | "timeoutMs"> = {},
): Promise<CommandResult> {
  const configFile = READS_CONFIGURATION.includes(args[0] ?? "") ? ["--config-file", workspace.configFile] : [];
  try {
    return await workspace.pulumi.run({ args: [...args, ...configFile], timeoutMs, ...call });
  } catch (error) {
    if (error instanceof ClassifiedError) throw error;
    // It may be there again, as may the memory or the process number that it lacked; nothing would tell us.
    throw new RetryableError("NoPulumi", `Pulumi could not be started: ${errorMessageOf(error)}`);
  }
}

/**
 * What a command about a stack prints; `undefined` when there is no such stack.
 *
 * @param failure says in the error what could not be done
 * @throws RetryableError `Unreadable` when the command fails; as {@link runPulumi}
 */
export async function askPulumi(
  options: PulumiOptions,
  args: readonly string[],
  failure: string,
  call: Omit<Command, "args" | "timeoutMs">,
): Promise<string | undefined> {
  const { exitCode, stdout, stderr, signal, interrupted, error } = await runPulumi(options, args, call);
  if (exitCode === 0) return stdout;
  if (error?.kind === "stackNotFound") return undefined;
  const words = stderr.trim() || stdout.trim() || (interrupted ?? signal ?? `exit code ${exitCode}`);
  throw new RetryableError("Unreadable", `${failure}: ${withoutPasswords(words)}`);
}

/** The CLI quotes its backend's URL in errors, and failures end up in conditions, which many people may read. */
export function withoutPasswords(text: string): string {
  return text.replace(/(\/\/[^\s:/@]*):[^\s/]*@/g, "$1:***@");
}

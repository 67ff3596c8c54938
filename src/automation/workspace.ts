import { createHash } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { TerminalError } from "../../providers/errors";
import type { StateProtection } from "../config";
import { runCommand, signalGroup } from "./command";
import { crashSafeBackendUrl } from "./file-backend";

/** The Pulumi project that all of Kindstack's stacks belong to. */
export const PROJECT = "kindstack";

/** Where and how the CLI runs. */
export interface Workspace {
  /** The Pulumi CLI. */
  pulumi: string;
  backendUrl: string;
  /** Holds `Pulumi.yaml`; nothing is ever written here by an update, so that updates may share it. */
  projectDirectory: string;
  /** The configuration of every stack: the salt of the passphrase or the key of the key service, nothing else. */
  configFile: string;
  /** An empty stack's checkpoint. */
  checkpointTemplate: string;
  /** For temporary folders of updates. */
  scratchDirectory: string;
  /** The environment of the CLI: what it needs, and no credential that only providers need. */
  environment: NodeJS.ProcessEnv;
  /** Has a file for each running CLI, named by its pid. */
  processDirectory: string;
  /** Remembers a running CLI until the returned function is called; see {@link endLeftovers}. */
  recordProcess(pid: number): () => void;
}

export interface WorkspaceSettings {
  pulumi: string;
  directory: string;
  backendUrl: string;
  protection: StateProtection;
  environment: NodeJS.ProcessEnv;
}

const COMMAND_TIMEOUT_MS = 60_000;

/**
 * Prepares a work directory: the project, the passphrase's salt or a key of the key service, a home for the CLI; ends and
 * removes what a crashed predecessor left there.
 *
 * @throws TerminalError when the passphrase does not fit the one that the work directory was made with
 */
export async function openWorkspace(settings: WorkspaceSettings): Promise<Workspace> {
  const { directory, pulumi, backendUrl } = settings;
  const projectDirectory = join(directory, "project");
  const scratchDirectory = join(directory, "scratch");
  const processes = join(directory, "processes");
  await endLeftovers(processes, directory);
  await rm(scratchDirectory, { recursive: true, force: true });
  const home = join(directory, "home");
  for (const path of [projectDirectory, scratchDirectory, processes, home]) await mkdir(path, { recursive: true });
  await preventLogs(home);
  await writeFile(join(projectDirectory, "Pulumi.yaml"), `name: ${PROJECT}\nruntime: nodejs\n`);

  const environment = cliEnvironment(settings);
  const { configFile, checkpointTemplate } = await templates(settings, environment);
  return {
    pulumi,
    backendUrl,
    projectDirectory,
    configFile,
    checkpointTemplate,
    scratchDirectory,
    environment: { ...environment, PULUMI_BACKEND_URL: crashSafeBackendUrl(backendUrl) },
    processDirectory: processes,
    recordProcess(pid) {
      const record = join(processes, String(pid));
      writeFileSync(record, "");
      return () => rmSync(record, { force: true });
    },
  };
}

/**
 * The configuration and the empty checkpoint that all stacks start from, made once by `pulumi stack init` in a backend
 * of its own. Stacks share one salt, or one key: a new one for each would cost another key derivation, or another
 * question to the key service, in every update.
 */
async function templates(
  { directory, pulumi, protection: { keyService } }: WorkspaceSettings,
  environment: NodeJS.ProcessEnv,
): Promise<{ configFile: string; checkpointTemplate: string }> {
  const target = join(directory, keyService === undefined ? "template" : `template-${digestOf(keyService)}`);
  const configFile = join(target, "stack-config.yaml");
  const read = async () => ({
    configFile,
    checkpointTemplate: await readFile(join(target, "checkpoint.json"), "utf8"),
  });
  const existing = await read().catch(() => undefined);
  if (existing !== undefined) return existing;

  const aside = await mkdtemp(join(directory, "template-"));
  try {
    await writeFile(join(aside, "Pulumi.yaml"), `name: ${PROJECT}\nruntime: nodejs\n`);
    const provider = keyService === undefined ? [] : ["--secrets-provider", keyService];
    const result = await runCommand(
      pulumi,
      ["stack", "init", "template", "--no-select", "--non-interactive", ...provider],
      {
        cwd: aside,
        env: { ...environment, PULUMI_BACKEND_URL: `file://${aside}` },
        timeoutMs: COMMAND_TIMEOUT_MS,
      },
    );
    if (result.exitCode !== 0) {
      throw new TerminalError(
        "NoWorkspace",
        `the Pulumi CLI could not make a stack: ${result.stderr || result.stdout}`,
      );
    }
    await rename(join(aside, ".pulumi", "stacks", PROJECT, "template.json"), join(aside, "checkpoint.json"));
    await rename(join(aside, "Pulumi.template.yaml"), join(aside, "stack-config.yaml"));
    await rm(join(aside, ".pulumi"), { recursive: true, force: true });
    await rm(target, { recursive: true, force: true });
    await rename(aside, target);
  } finally {
    await rm(aside, { recursive: true, force: true });
  }
  return read();
}

/** Secrets that providers read from the operator's environment; the CLI has no use for them. */
const PROVIDER_SECRETS = /^(PSQL_|PG[A-Z]|KUBECONFIG$|KINDSTACK_)/;

function cliEnvironment({ directory, environment, protection: { passphrase } }: WorkspaceSettings): NodeJS.ProcessEnv {
  const inherited = Object.fromEntries(Object.entries(environment).filter(([name]) => !PROVIDER_SECRETS.test(name)));
  delete inherited.PULUMI_CONFIG_PASSPHRASE;
  delete inherited.PULUMI_CONFIG_PASSPHRASE_FILE;
  return {
    ...inherited,
    PULUMI_HOME: join(directory, "home"),
    ...(passphrase !== undefined &&
      ("file" in passphrase
        ? { PULUMI_CONFIG_PASSPHRASE_FILE: passphrase.file }
        : { PULUMI_CONFIG_PASSPHRASE: passphrase.value })),
    PULUMI_SKIP_UPDATE_CHECK: "true",
    PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION: "true",
    PULUMI_DEBUG_COMMANDS: "true", // offers --event-log
    PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS: "true", // history has them
    // A process that lives for less than a second spends a tenth of it and more on memory that it could just leave.
    GOGC: environment.GOGC ?? "400",
  };
}

/**
 * For every command the CLI writes a log of all that it does, compressed and encrypted, which takes a quarter of its CPU
 * time in a large update. It has no option against that, but goes on without where the place of the folder is taken
 * (`pkg/logging/encrypted.go`).
 */
async function preventLogs(home: string): Promise<void> {
  const logs = join(home, "logs");
  await rm(logs, { recursive: true, force: true });
  await writeFile(logs, "Kindstack's updates are logged by Kindstack; this keeps the CLI from doing it as well.\n");
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 8);
}

/**
 * Kills the CLI processes of an operator that died without ending them. They hold locks, and what they still do nobody
 * would hear of. A pid counts only when that process runs in this work directory: pids are used again.
 */
async function endLeftovers(processes: string, directory: string): Promise<void> {
  for (const file of await readdir(processes).catch(() => [])) {
    const pid = Number(file);
    const environment = await readFile(`/proc/${pid}/environ`, "utf8").catch(() => "");
    if (environment.includes(`PULUMI_HOME=${join(directory, "home")}`)) signalGroup(pid, "SIGKILL");
    await rm(join(processes, file), { force: true });
  }
}

import { hash } from "node:crypto";
import { mkdir, readFile, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { TerminalError } from "../../providers/errors";
import type { StateConfig } from "../config";
import { PROJECT, stackPaths } from "./backend";
import { crashSafeBackendUrl } from "./file-backend";
import type { Pulumi, Workspace } from "./pulumi";
import { PulumiCli } from "./pulumi-cli";
import { PulumiServer, type PulumiServerTiming } from "./pulumi-server";
import { withScratch } from "./scratch";

export interface WorkspaceSettings extends StateConfig {
  pulumi: PulumiBinary;
  environment: NodeJS.ProcessEnv;
  /** Where the providers are ({@link ProviderHost.attachment}). */
  attachment: string;
  log: { error(fields: object, message: string): void };
  timing?: PulumiServerTiming;
}

/** The file of the program that runs Pulumi's commands. */
export type PulumiBinary = { server: string; cli?: never } | { cli: string; server?: never };

const COMMAND_TIMEOUT_MS = 60_000;

/**
 * Prepares a work directory: the project, the passphrase's salt or a key of the key service, a home for the CLI.
 *
 * @returns what is to be closed with `pulumi.close()`
 * @throws TerminalError when the passphrase does not fit the one that the work directory was made with
 */
export async function openWorkspace(settings: WorkspaceSettings): Promise<Workspace> {
  const { workDirectory, backendUrl } = settings;
  const projectDirectory = join(workDirectory, "project");
  const scratchDirectory = join(workDirectory, "scratch");
  await rm(scratchDirectory, { recursive: true, force: true });
  const home = join(workDirectory, "home");
  for (const path of [projectDirectory, scratchDirectory, home]) await mkdir(path, { recursive: true });
  await preventLogs(home);
  await linkPlugins(home, settings.environment);
  await writeFile(join(projectDirectory, "Pulumi.yaml"), `name: ${PROJECT}\nruntime: nodejs\n`);

  const pulumi = openPulumi(settings, projectDirectory, scratchDirectory);
  try {
    const { configFile, checkpointTemplate } = await templates(settings, pulumi, projectDirectory);
    return { pulumi, backendUrl, configFile, checkpointTemplate, scratchDirectory };
  } catch (error) {
    await pulumi.close();
    throw error;
  }
}

/** Nothing is ever written to the project's directory by an update, so that updates may share it. */
function openPulumi(settings: WorkspaceSettings, cwd: string, scratchDirectory: string): Pulumi {
  const { pulumi, log } = settings;
  const environment = pulumiEnvironment(settings);
  if (pulumi.cli !== undefined) return new PulumiCli({ file: pulumi.cli, cwd, environment, scratchDirectory, log });
  return new PulumiServer({ file: pulumi.server, cwd, environment, log, ...settings.timing });
}

/**
 * The configuration and the empty checkpoint that all stacks start from, made once by `pulumi stack init` in a backend
 * of its own. Stacks share one salt, or one key: a new one for each would cost another key derivation, or another
 * question to the key service, in every update.
 */
async function templates(
  { workDirectory, protection: { keyService } }: WorkspaceSettings,
  pulumi: Pulumi,
  projectDirectory: string,
): Promise<{ configFile: string; checkpointTemplate: string }> {
  const digest = keyService && hash("sha256", keyService).slice(0, 8);
  const target = join(workDirectory, digest === undefined ? "template" : `template-${digest}`);
  const configFile = join(target, "stack-config.yaml");
  const read = async () => ({
    configFile,
    checkpointTemplate: await readFile(join(target, "checkpoint.json"), "utf8"),
  });
  const existing = await read().catch(() => undefined);
  if (existing !== undefined) return existing;

  await withScratch(workDirectory, "template", async (aside) => {
    const provider = keyService === undefined ? [] : ["--secrets-provider", keyService];
    const result = await pulumi.run({
      args: ["stack", "init", "template", "--no-select", ...provider],
      backendUrl: `file://${aside}`,
      timeoutMs: COMMAND_TIMEOUT_MS,
    });
    if (result.exitCode !== 0) {
      throw new TerminalError("NoWorkspace", `Pulumi could not make a stack: ${result.stderr || result.stdout}`);
    }
    await rename(stackPaths(join(aside, ".pulumi"), "template").checkpoint, join(aside, "checkpoint.json"));
    await rename(join(projectDirectory, "Pulumi.template.yaml"), join(aside, "stack-config.yaml"));
    await rm(join(aside, ".pulumi"), { recursive: true, force: true });
    await rm(target, { recursive: true, force: true });
    await rename(aside, target);
  });
  return read();
}

/** Secrets that providers read from the operator's environment, for which Pulumi has no use; and what is set below. */
const NOT_INHERITED = /^(PSQL_|PG[A-Z]|KUBECONFIG$|KINDSTACK_|PULUMI_CONFIG_PASSPHRASE)/;

function pulumiEnvironment(settings: WorkspaceSettings): NodeJS.ProcessEnv {
  const { workDirectory, environment, backendUrl, attachment } = settings;
  const { passphrase } = settings.protection;
  return {
    ...Object.fromEntries(Object.entries(environment).filter(([name]) => !NOT_INHERITED.test(name))),
    PULUMI_HOME: join(workDirectory, "home"),
    PULUMI_BACKEND_URL: crashSafeBackendUrl(backendUrl),
    PULUMI_DEBUG_PROVIDERS: attachment,
    ...(passphrase !== undefined &&
      ("file" in passphrase
        ? { PULUMI_CONFIG_PASSPHRASE_FILE: passphrase.file }
        : { PULUMI_CONFIG_PASSPHRASE: passphrase.value })),
    PULUMI_SKIP_UPDATE_CHECK: "true",
    PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION: "true",
    PULUMI_DEBUG_COMMANDS: "true", // offers --event-log
    PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS: "true", // history has them
    PULUMI_DIY_BACKEND_NO_LEGACY_WARNING: "true", // to look for legacy stacks lists all stacks
  };
}

/**
 * For every command the CLI writes a log of all that it does, compressed and encrypted, which takes a quarter of its CPU
 * time in a large update. It has no option against that, but does without where a file has the folder's name
 * (`pkg/logging/encrypted.go`).
 */
async function preventLogs(home: string): Promise<void> {
  const logs = join(home, "logs");
  await rm(logs, { recursive: true, force: true });
  await writeFile(logs, "Kindstack's updates are logged by Kindstack; this keeps the CLI from doing it as well.\n");
}

/** The resource plugins that the user has installed, besides those on PATH. */
async function linkPlugins(home: string, { PULUMI_HOME, HOME }: NodeJS.ProcessEnv): Promise<void> {
  const installed = PULUMI_HOME ?? (HOME === undefined ? undefined : join(HOME, ".pulumi"));
  if (installed === undefined) return;
  const [target, link] = [resolve(installed, "plugins"), join(home, "plugins")];
  await rm(link, { recursive: true, force: true });
  if ((await stat(target).catch(() => undefined))?.isDirectory()) await symlink(target, link);
}

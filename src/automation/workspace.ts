import { hash } from "node:crypto";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { errorMessageOf, TerminalError } from "../../providers/errors";
import type { StateConfig } from "../config";
import type { EngineProcessOptions } from "./engine-process";
import { EngineProcesses, type EngineTiming } from "./engine-processes";

export interface EngineSettings extends StateConfig {
  /** The file of the engine's program. */
  file: string;
  environment: NodeJS.ProcessEnv;
  log: EngineProcessOptions["log"];
  timing?: EngineTiming;
}

export async function openEngine(settings: EngineSettings): Promise<EngineProcesses> {
  const { workDirectory, file, log, timing, protection } = settings;
  await mkdir(workDirectory, { recursive: true });
  const { keyService } = protection;
  const digest = keyService && hash("sha256", keyService).slice(0, 8);
  const secrets = join(workDirectory, digest === undefined ? "secrets.json" : `secrets-${digest}.json`);
  const args = [`--secrets=${secrets}`, ...(keyService === undefined ? [] : [`--secrets-provider=${keyService}`])];
  const inherited = Object.entries(settings.environment).filter(([name]) => !NOT_INHERITED.test(name));
  const environment = { ...Object.fromEntries(inherited), ...stateEnvironment(settings) };
  const engine = new EngineProcesses({ file, args, environment, log, ...timing });
  try {
    await engine.use(async () => {});
    return engine;
  } catch (error) {
    await engine.close();
    if (error instanceof TerminalError) throw error;
    const message = errorMessageOf(error);
    const advice = message.endsWith("incorrect passphrase")
      ? `: ${secrets} is of another one. Use that one, or delete the file if all states have the new one`
      : "";
    throw new TerminalError("NoWorkspace", `${message}${advice}`);
  }
}

/** Secrets that providers read from the operator's environment, for which Pulumi has no use; and what is set below. */
const NOT_INHERITED = /^(PSQL_|PG[A-Z]|KUBECONFIG$|KINDSTACK_|PULUMI_CONFIG_PASSPHRASE)/;

/** What tells Pulumi where the state is, and how it is encrypted. */
export function stateEnvironment({ backendUrl, protection: { passphrase } }: StateConfig): Record<string, string> {
  return {
    PULUMI_BACKEND_URL: backendUrl,
    ...(passphrase !== undefined &&
      ("file" in passphrase
        ? { PULUMI_CONFIG_PASSPHRASE_FILE: passphrase.file }
        : { PULUMI_CONFIG_PASSPHRASE: passphrase.value })),
    PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION: "true",
  };
}

/** Works with a new folder in `parent`, which is removed afterwards. */
export async function withScratch<T>(
  parent: string,
  name: string,
  work: (directory: string) => Promise<T>,
): Promise<T> {
  const directory = await mkdtemp(join(parent, `${name}-`));
  try {
    return await work(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { ProviderHost } from "../../providers/host/session";
import { providersOf } from "../../providers/index";
import { GoEngine, type GoEngineOptions } from "../../src/automation/go-engine";
import { type EngineSettings, openEngine } from "../../src/automation/workspace";
import { resolveBinary } from "../../src/toolchain/resolve";

/** The engine with its state in a folder, and the providers that an operator has. */
export async function openEngineIn(
  directory: string,
  settings: Partial<EngineSettings> = {},
  options: Partial<GoEngineOptions> = {},
) {
  const stateUrl = pathToFileURL(join(directory, "state")).href;
  const processes = await openEngine({
    file: await resolveBinary("engine"),
    workDirectory: join(directory, "work"),
    backendUrl: stateUrl,
    protection: { passphrase: { value: "the-passphrase" }, keyService: undefined },
    environment: process.env,
    log: console,
    ...settings,
  });
  const engine = new GoEngine({ processes, host: new ProviderHost(providersOf()), timeoutMs: 60_000, ...options });
  return { stateUrl, processes, engine };
}

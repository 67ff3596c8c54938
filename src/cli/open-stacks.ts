import { ProviderHost } from "../../providers/host/host";
import { providersOf } from "../../providers/index";
import type { AnyKind } from "../../stacks/contract/kind";
import type { EngineProcesses } from "../automation/engine-processes";
import { type EngineSettings, openEngine } from "../automation/workspace";

/** The engine with the providers of this process. */
export interface OpenStacks {
  engine: EngineProcesses;
  host: ProviderHost;
  close(): Promise<void>;
}

/** Opens the stacks of kinds. @throws what {@link openEngine} throws */
export async function openStacks(
  kinds: readonly AnyKind[],
  settings: Omit<EngineSettings, "environment">,
): Promise<OpenStacks> {
  const host = new ProviderHost(providersOf(kinds));
  const engine = await openEngine({ ...settings, environment: process.env });
  return { engine, host, close: () => engine.close() };
}

import { tmpdir } from "node:os";
import { TerminalError } from "../../providers/errors";
import { ProviderHost } from "../../providers/host/host";
import { providersOf } from "../../providers/index";
import type { AnyKind } from "../../stacks/contract/kind";
import { GoEngine, type GoEngineOptions } from "../automation/go-engine";
import { withScratch } from "../automation/scratch";
import { type EngineSettings, openEngine } from "../automation/workspace";
import { readStateConfig, type StateConfig } from "../config";
import { resolveEngine } from "../toolchain/engine";
import type { ResolveOptions } from "../toolchain/resolve";

type Settings = Omit<EngineSettings, "environment"> & Omit<GoEngineOptions, "processes" | "host">;

/** The engine with the providers of this process. */
export interface OpenStacks {
  engine: GoEngine;
  host: ProviderHost;
}

/** Opens the stacks of kinds. @throws what {@link openEngine} throws */
export async function openStacks(kinds: readonly AnyKind[], settings: Settings): Promise<OpenStacks> {
  const host = new ProviderHost(providersOf(kinds));
  const processes = await openEngine({ ...settings, environment: process.env });
  return { engine: new GoEngine({ ...settings, processes, host }), host };
}

/** Works with the states of the backend that the environment names, in a scratch folder; it runs no program or provider. */
export function withStates<T>(
  observe: NonNullable<ResolveOptions["observe"]>,
  signal: AbortSignal,
  work: (engine: GoEngine, state: StateConfig) => Promise<T>,
): Promise<T> {
  if (!process.env.PULUMI_BACKEND_URL) {
    throw new TerminalError("Misconfigured", "PULUMI_BACKEND_URL must name the backend that the operator uses");
  }
  const state = readStateConfig(process.env);
  return withScratch(tmpdir(), "kindstack-state", async (workDirectory) => {
    const file = await resolveEngine({ signal, observe }, state);
    const { engine } = await openStacks([], { ...state, workDirectory, file, log: console, timeoutMs: 0 });
    return work(engine, state).finally(() => engine.close());
  });
}

import Type from "typebox";
import { Compile } from "typebox/compile";
import { EngineProcess, type EngineProcessOptions } from "./engine-process";
import { RpcError, ttlArguments } from "./rpc";

export const pluginProcessSchema = Type.Object({
  name: Type.String(),
  version: Type.Optional(Type.String()),
  pid: Type.Integer(),
  startedAt: Type.String({ description: "ISO 8601" }),
  /** The number of updates that have used the process, with the running ones. */
  updates: Type.Integer(),
  inUse: Type.Integer(),
  /** With its children's. */
  memoryBytes: Type.Number(),
  /** `draining` gets no new updates, and ends with those that it has. */
  state: Type.String({ description: "used, idle or draining" }),
});

type PluginProcess = Type.Static<typeof pluginProcessSchema>;

export interface PluginHostTiming {
  /** The process of a plugin without an update ends after this long. */
  pluginIdleMs?: number | undefined;
  /** What all processes of plugins may have in memory; by default, a share of the container's limit. */
  pluginMemoryBytes?: number | undefined;
}

/** What the host of plugins says; {@link EngineProcess} has the rest. */
const isAddress = Compile(Type.Object({ address: Type.String(), token: Type.String() }));
const hasPlugins = Compile(Type.Object({ plugins: Type.Array(pluginProcessSchema) }));

/** The state's address and credentials, which plugins have no use for. */
const OF_THE_STATE = /^(PULUMI_BACKEND_URL$|PULUMI_CONFIG_PASSPHRASE)/;

/**
 * The process that runs plugins, and outlives the engine's: an engine is succeeded after some hundred operations, and to
 * start a plugin may take seconds. It is started when an update uses the first plugin, and ends when there are none.
 */
export class PluginHost {
  readonly #options: EngineProcessOptions;
  #current: EngineProcess | undefined;
  #allowedUntil: number | undefined;

  constructor({ pluginIdleMs, pluginMemoryBytes, ...options }: EngineProcessOptions & PluginHostTiming) {
    const environment = Object.entries(options.environment).filter(([name]) => !OF_THE_STATE.test(name));
    this.#options = {
      ...options,
      environment: Object.fromEntries(environment),
      args: [
        "--plugins",
        ...(pluginIdleMs === undefined ? [] : [`--plugin-idle=${pluginIdleMs}ms`]),
        ...(pluginMemoryBytes === undefined ? [] : [`--plugins-memory=${pluginMemoryBytes}`]),
      ],
    };
  }

  /** The address and token with which an engine connects to the host. @throws RetryableError `NoEngine`, RpcError, EngineGoneError */
  async address(): Promise<{ address: string; token: string }> {
    const process = this.#running();
    await process.ready;
    const at = await process.ask("listen", {});
    if (!isAddress.Check(at)) throw new RpcError("no address", undefined);
    return at;
  }

  /** The processes of plugins; none while the host does not run. */
  async list(): Promise<PluginProcess[]> {
    if (this.process === undefined) return [];
    const answer = await this.process.ask("ping", {});
    if (!hasPlugins.Check(answer)) throw new RpcError("no plugins", undefined);
    return answer.plugins;
  }

  get process(): EngineProcess | undefined {
    return this.#current?.isOver === false ? this.#current : undefined;
  }

  allow(ms: number): void {
    this.#allowedUntil = performance.now() + ms;
    this.process?.allow(ms);
  }

  async close(): Promise<void> {
    await this.#current?.stop();
  }

  #running(): EngineProcess {
    if (this.process !== undefined) return this.process;
    const args = [...this.#options.args, ...ttlArguments(this.#allowedUntil)];
    const process = new EngineProcess({ ...this.#options, args, onIdle: () => void process.stop() }, () => {});
    this.#current = process;
    return process;
  }
}

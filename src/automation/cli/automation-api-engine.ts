import { ConcurrentUpdateError } from "@pulumi/pulumi/automation/errors";
import type { EngineEvent } from "@pulumi/pulumi/automation/events";
import type { ResourceMonitorClient } from "@pulumi/pulumi/proto/resource_grpc_pb";
import * as settings from "@pulumi/pulumi/runtime/settings";
import pLimit from "p-limit";
import { asError, errorMessageOf, RetryableError, TerminalError } from "../../../providers/errors";
import { withoutPasswords } from "../../../providers/passwords";
import { NotRegisteredError } from "../../../providers/registration";
import type { HistoryEntry, StackEngine } from "../engine";
import { EngineGoneError } from "../engine-process";
import type { Ran } from "../event-log";
import { reportOf } from "../event-log";
import { type Ended, runInterruptible } from "../interruption";
import { type Operation, Operations, type OperationsOptions } from "../operations";
import { type BackendOwner, ownerFileOf, readOwner, writeOwner } from "../owner-file";
import { declaredInTime } from "../program";
import { noteUnmade } from "../sdk-program";
import type { StackState } from "../stack-state";
import type { EngineSettings } from "../workspace";
import { withScratch } from "../workspace";
import { exportStack, findStack, openLocalWorkspace, perform, type Workspace } from "./local-workspace";
import { serveProviders } from "./provider-server";

/**
 * The stock Automation API with the CLI, one operation at a time: where the engine in Go was not built, and as the oracle of
 * its tests. A crash leaves the CLI's lock, and providers in this process cannot tell whose it is: for a single replica.
 */
export class AutomationApiEngine extends Operations implements StackEngine {
  readonly #turn = pLimit(1);

  private constructor(
    readonly settings: EngineSettings,
    options: OperationsOptions,
    readonly workspace: Workspace,
  ) {
    super(options);
  }

  /** @param settings with the CLI as its file */
  static async open(settings: EngineSettings, options: OperationsOptions): Promise<AutomationApiEngine> {
    return new AutomationApiEngine(settings, options, await openLocalWorkspace(settings));
  }

  protected async run(operation: Operation): Promise<Ran> {
    const { method, stack, program, options } = operation;
    if (options.plans || options.plan) {
      throw new TerminalError("PlansUnsupported", "the Automation API does not hold operations to plans");
    }
    return this.#turn(async () => {
      if (options.owner !== undefined && (await this.backendOwner())?.id !== options.owner) {
        throw new RetryableError("BackendForeign", "the backend has another owner, or none");
      }
      const signals = [options.signal, options.stop];
      try {
        // Else what a program registers before it throws would be done.
        if (program !== undefined && !options.sdkRuntime) {
          await declaredInTime(program, { timeoutMs: this.options.timeoutMs, signals });
        }
      } catch (error) {
        if (signals.some((signal) => signal?.aborted)) return { stack, ended: { interrupted: "aborted" } };
        return { stack, ended: {}, programError: asError(error) };
      }
      const exists = (await findStack(stack, this.workspace)) !== undefined;
      // The CLI keeps no proof of a destruction: a destroyed stack counts as missing until its object is gone.
      const missing = !exists && options.object?.mustExist === true;
      if (missing) return { stack, ended: {}, outcome: { exists, succeeded: false, missing, phasesMs: {} } };
      if (exists || method === "up") return this.#operate(operation, this.workspace, exists);
      if (method !== "preview") return { stack, ended: {}, outcome: { exists, succeeded: true, phasesMs: {} } };
      // The Automation API previews only existing stacks: an empty one is made in a scratch folder.
      return withScratch(this.settings.workDirectory, "preview", async (workDirectory) => {
        const elsewhere = { ...this.settings, workDirectory, backendUrl: `file://${workDirectory}` };
        return this.#operate(operation, await openLocalWorkspace(elsewhere), exists);
      });
    });
  }

  async #operate(operation: Operation, workspace: Workspace, exists: boolean): Promise<Ran> {
    const { stack, options, program } = operation;
    const { timeoutMs } = this.options;
    const events: EngineEvent[] = [];
    const { signal, stop, context } = options;
    const session = this.openSession(operation);
    const abort = new AbortController();
    const interrupt = () => abort.abort();
    const server = await serveProviders(session, interrupt);
    let programError: unknown;
    workspace.program = async () => {
      // Without a failed resource, the engine would delete the resources that depend on it.
      const unmade = noteUnmade(settings.getMonitor() as ResourceMonitorClient);
      try {
        await program?.();
        await (settings as unknown as { waitForRPCs(): Promise<void> }).waitForRPCs();
        if (unmade.names.size > 0) throw new NotRegisteredError("not everything was made");
      } catch (thrown) {
        const error = unmade.refusal ?? thrown;
        if (!(error instanceof NotRegisteredError)) programError = asError(error);
        throw asError(error);
      }
    };
    workspace.envVars.PULUMI_DEBUG_PROVIDERS = `pulumi-nodejs:${server.port}`;
    const run = { signal: abort.signal, onEvent: (event: EngineEvent) => void events.push(event) };
    let ended: Ended;
    try {
      ended = await runInterruptible({ timeoutMs, signal, stop, fence: context?.fence }, () => {
        const gone = Promise.withResolvers<never>();
        const kill = () => {
          interrupt();
          gone.reject(new EngineGoneError("Pulumi's CLI did not end when it was told to"));
        };
        const done = perform(operation, workspace, run);
        return { ended: Promise.race([done, gone.promise]), interrupt, terminate: interrupt, kill };
      });
    } finally {
      session.close();
      server.close();
    }
    const { error, interrupted, cutOff } = ended;
    if (error instanceof ConcurrentUpdateError) {
      const advice = `only if no process works on it, run \`pulumi cancel --stack organization/kindstack/${stack}\``;
      throw new RetryableError("Locked", `the stack ${stack} is locked; ${advice}`);
    }
    const succeeded = error === undefined && interrupted === undefined;
    const isTold = session.failures.length + reportOf(events).errors.length > 0;
    const message = succeeded || isTold || interrupted ? undefined : withoutPasswords(errorMessageOf(error));
    return {
      stack,
      ended:
        error instanceof EngineGoneError ? ended : { ...(interrupted && { interrupted }), ...(cutOff && { cutOff }) },
      outcome: { exists, succeeded, ...(message !== undefined && { message }), phasesMs: {} },
      events,
      refused: session.failures,
      unrecorded: session.unrecorded,
      given: session.given,
      programError,
    };
  }

  history(stack: string): Promise<HistoryEntry[] | undefined> {
    return this.#turn(async () => (await findStack(stack, this.workspace))?.history(undefined, undefined, false));
  }

  exportStack(stack: string): Promise<StackState | undefined> {
    return this.#turn(() => exportStack(this.settings.file, stack, this.workspace));
  }

  listStacks(): Promise<{ name: string }[]> {
    return this.#turn(() => this.workspace.listStacks());
  }

  async backendOwner(): Promise<BackendOwner | undefined> {
    return readOwner(ownerFileOf(this.settings.backendUrl));
  }

  async claimBackend(owner: BackendOwner, replaces?: string): Promise<BackendOwner> {
    return writeOwner(ownerFileOf(this.settings.backendUrl), owner, replaces);
  }

  async forgetDestroyed(): Promise<void> {}

  allow(): void {}

  async close(): Promise<void> {
    await this.#turn(() => undefined);
  }
}

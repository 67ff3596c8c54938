import { mkdir, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { PulumiCommand } from "@pulumi/pulumi/automation/cmd";
import { ConcurrentUpdateError, StackNotFoundError } from "@pulumi/pulumi/automation/errors";
import type { EngineEvent } from "@pulumi/pulumi/automation/events";
import { LocalWorkspace } from "@pulumi/pulumi/automation/localWorkspace";
import { Stack } from "@pulumi/pulumi/automation/stack";
import type { ResourceMonitorClient } from "@pulumi/pulumi/proto/resource_grpc_pb";
import * as settings from "@pulumi/pulumi/runtime/settings";
import { execa } from "execa";
import pLimit from "p-limit";
import { errorMessageOf, RetryableError, TerminalError } from "../../providers/errors";
import { checkFence, currentFence } from "../../providers/fence";
import { withoutPasswords } from "../../providers/passwords";
import { declaredBy, NotRegisteredError } from "../../providers/registration";
import type { HistoryEntry, StackEngine } from "./engine";
import { EngineGoneError } from "./engine-process";
import { reportOf } from "./event-log";
import type { Ran } from "./failures";
import { type Ended, runInterruptible } from "./interruption";
import { type Operation, Operations, type OperationsOptions } from "./operations";
import { serveProviders } from "./provider-server";
import { withScratch } from "./scratch";
import { noteUnmade } from "./sdk-program";
import type { StackState } from "./stack-state";
import { type EngineSettings, stateEnvironment } from "./workspace";

type Workspace = LocalWorkspace & { envVars: Record<string, string> };

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
    return new AutomationApiEngine(settings, options, await openWorkspace(settings));
  }

  protected async run(operation: Operation): Promise<Ran> {
    const { method, stack, program, options } = operation;
    if (options.plans || options.plan) {
      throw new TerminalError("PlansUnsupported", "the Automation API does not hold operations to plans");
    }
    return this.#turn(async () => {
      try {
        // Else what a program registers before it throws would be done.
        if (program !== undefined && !options.sdkRuntime) await declaredBy(program);
      } catch (programError) {
        return { ...NOTHING, programError };
      }
      const exists = (await this.#find(stack)) !== undefined;
      if (exists || method === "up") return this.#operate(operation, this.workspace, exists);
      if (method !== "preview") return { ...NOTHING, outcome: { exists, succeeded: true, phasesMs: {} } };
      // The Automation API previews only a stack that exists: this one does elsewhere.
      return withScratch(this.settings.workDirectory, "preview", async (workDirectory) => {
        const elsewhere = { ...this.settings, workDirectory, backendUrl: `file://${workDirectory}` };
        return this.#operate(operation, await openWorkspace(elsewhere), exists);
      });
    });
  }

  async #operate(operation: Operation, workspace: Workspace, exists: boolean): Promise<Ran> {
    const { method, stack, options, program } = operation;
    const { timeoutMs } = this.options;
    const events: EngineEvent[] = [];
    const { release, signal } = options;
    const session = this.options.host.openSession({ release, fence: currentFence(), keepsGiven: method === "preview" });
    const abort = new AbortController();
    const interrupt = () => abort.abort();
    const server = await serveProviders(session, interrupt);
    let programError: unknown;
    workspace.program = async () => {
      try {
        // With what failed left out, the engine would delete what depends on it.
        const unmade = noteUnmade(settings.getMonitor() as ResourceMonitorClient);
        await program?.();
        await (settings as unknown as { waitForRPCs(): Promise<void> }).waitForRPCs();
        if (unmade.size > 0) throw new NotRegisteredError("not everything was made");
      } catch (error) {
        if (!(error instanceof NotRegisteredError)) programError = error;
        throw error;
      }
    };
    workspace.envVars.PULUMI_DEBUG_PROVIDERS = `pulumi-nodejs:${server.port}`;
    const run = { signal: abort.signal, onEvent: (event: EngineEvent) => void events.push(event) };
    let ended: Ended;
    try {
      ended = await runInterruptible({ timeoutMs, signal }, () => {
        const gone = Promise.withResolvers<never>();
        const kill = () => {
          interrupt();
          gone.reject(new EngineGoneError("Pulumi's CLI did not end when it was told to"));
        };
        const done = perform(operation, stack, workspace, run);
        return { ended: Promise.race([done, gone.promise]), interrupt, terminate: interrupt, kill };
      });
    } finally {
      session.close();
      server.close();
    }
    const { error, interrupted } = ended;
    if (error instanceof ConcurrentUpdateError) {
      const advice = `only if no process works on it, run \`pulumi cancel --stack organization/kindstack/${stack}\``;
      throw new RetryableError("Locked", `the stack ${stack} is locked; ${advice}`);
    }
    const succeeded = error === undefined && interrupted === undefined;
    const isTold = session.failures.length + reportOf(events).errors.length > 0;
    const message = succeeded || isTold || interrupted ? undefined : withoutPasswords(errorMessageOf(error));
    return {
      ended: error instanceof EngineGoneError ? ended : { ...(interrupted && { interrupted }) },
      outcome: { exists, succeeded, ...(message !== undefined && { message }), phasesMs: {} },
      events,
      refused: session.failures,
      given: session.given,
      programError,
    };
  }

  history(stack: string): Promise<HistoryEntry[] | undefined> {
    return this.#turn(async () => (await this.#find(stack))?.history(undefined, undefined, false));
  }

  exportStack(stack: string): Promise<StackState | undefined> {
    const { workDir: cwd, envVars: env } = this.workspace; // the Automation API's own export decrypts secrets
    return this.#turn(async () => {
      const { stdout, stderr } = await execa(this.settings.file, ["stack", "export", "-s", stack], {
        cwd,
        env,
        reject: false,
      });
      if (stdout) return JSON.parse(stdout) as StackState;
      if (stderr.includes(`no stack named '${stack}' found`)) return undefined;
      throw new RetryableError("Unreadable", withoutPasswords(stderr));
    });
  }

  async removeStack(stack: string): Promise<void> {
    checkFence();
    await this.#turn(async () => {
      if (await this.#find(stack)) await this.workspace.removeStack(stack, { force: true });
    });
  }

  allow(): void {}

  async close(): Promise<void> {
    await this.#turn(() => undefined);
  }

  async #find(stack: string): Promise<Stack | undefined> {
    try {
      return await Stack.select(stack, this.workspace);
    } catch (error) {
      if (error instanceof StackNotFoundError) return undefined;
      throw new RetryableError("Unreadable", withoutPasswords(errorMessageOf(error)));
    }
  }
}

const NOTHING: Ran = { ended: {}, outcome: undefined, events: [], refused: [], programError: undefined };

async function perform(
  { method, options: { refresh = false, message } }: Operation,
  name: string,
  workspace: Workspace,
  run: { signal: AbortSignal; onEvent(event: EngineEvent): void },
): Promise<unknown> {
  const stack = await Stack.createOrSelect(name, workspace);
  const said = message === undefined ? {} : { message };
  switch (method) {
    case "up":
      return stack.up({ ...run, ...said, refresh, continueOnError: true });
    case "preview":
      return stack.preview({ ...run, refresh });
    case "refresh":
      return stack.refresh({ ...run, clearPendingCreates: true });
    case "destroy":
      return stack.destroy({ ...run, ...said, refresh, continueOnError: true, remove: true });
    case "previewDestroy":
      return stack.destroy({ ...run, refresh, previewOnly: true });
  }
}

async function openWorkspace(settings: EngineSettings): Promise<Workspace> {
  const { workDirectory, backendUrl, protection, file } = settings;
  const home = join(workDirectory, "pulumi");
  if (backendUrl.startsWith("file://")) await mkdir(fileURLToPath(new URL(backendUrl)), { recursive: true });
  await mkdir(join(home, "bin"), { recursive: true });
  await rm(join(home, "bin/pulumi"), { force: true });
  await symlink(file, join(home, "bin/pulumi"));
  return (await LocalWorkspace.create({
    workDir: home,
    pulumiHome: home,
    pulumiCommand: await PulumiCommand.get({ root: home }),
    projectSettings: { name: "kindstack", runtime: "nodejs" },
    ...(protection.keyService !== undefined && { secretsProvider: protection.keyService }),
    envVars: stateEnvironment(settings),
  })) as Workspace;
}

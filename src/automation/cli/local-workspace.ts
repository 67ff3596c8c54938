import { mkdir, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { PulumiCommand } from "@pulumi/pulumi/automation/cmd";
import { StackNotFoundError } from "@pulumi/pulumi/automation/errors";
import type { EngineEvent } from "@pulumi/pulumi/automation/events";
import { LocalWorkspace } from "@pulumi/pulumi/automation/localWorkspace";
import { Stack } from "@pulumi/pulumi/automation/stack";
import { execa } from "execa";
import { errorMessageOf, RetryableError } from "../../../providers/errors";
import { withoutPasswords } from "../../../providers/passwords";
import type { Operation } from "../operations";
import type { StackState } from "../stack-state";
import { type EngineSettings, stateEnvironment } from "../workspace";

export type Workspace = LocalWorkspace & { envVars: Record<string, string> };

export async function openLocalWorkspace(settings: EngineSettings): Promise<Workspace> {
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

export async function findStack(name: string, workspace: Workspace): Promise<Stack | undefined> {
  try {
    return await Stack.select(name, workspace);
  } catch (error) {
    if (error instanceof StackNotFoundError) return undefined;
    throw new RetryableError("Unreadable", withoutPasswords(errorMessageOf(error)));
  }
}

/**
 * A stack's state with encrypted secrets, if there is the stack: the Automation API's own export decrypts them.
 *
 * @param file the CLI
 * @throws RetryableError `Unreadable` when the backend does not answer
 */
export async function exportStack(file: string, name: string, workspace: Workspace): Promise<StackState | undefined> {
  if ((await findStack(name, workspace)) === undefined) return undefined;
  const { workDir: cwd, envVars: env } = workspace;
  const { stdout, stderr } = await execa(file, ["stack", "export", "-s", name], { cwd, env, reject: false });
  if (stdout) return JSON.parse(stdout) as StackState;
  throw new RetryableError("Unreadable", withoutPasswords(stderr));
}

/** Runs an operation to its end. @throws what the CLI says, as the Automation API classifies it */
export async function perform(
  { method, stack: name, options: { refresh = false, message } }: Operation,
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
    case "destroy":
      return stack.destroy({ ...run, ...said, continueOnError: true, remove: true });
    case "previewDestroy":
      return stack.destroy({ ...run, refresh, previewOnly: true });
  }
}

import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { PulumiCommand } from "@pulumi/pulumi/automation/cmd";
import { LocalWorkspace } from "@pulumi/pulumi/automation/localWorkspace";
import type { OpMap, UpResult } from "@pulumi/pulumi/automation/stack";
import type { DefinedProvider } from "../../../providers/dynamic";
import { ProviderHost } from "../../../providers/host/session";
import { providersOf } from "../../../providers/index";
import { GoEngine } from "../../../src/automation/go-engine";
import type { Program } from "../../../src/automation/program";
import { openEngine } from "../../../src/automation/workspace";
import { environmentFile } from "../../../src/dev/cluster";
import { resolveBinary } from "../../../src/toolchain/resolve";

const ROOT = path.resolve(__dirname, "../../..");
const PLUGIN = "pulumi-resource-pulumi-nodejs";

/** How an update by the CLI ended. */
interface ScriptedResult {
  summary: { result: string; resourceChanges: OpMap };
}

/**
 * Two engines on the same stacks: `hosted` asks the provider host of this process, as the operator does; `scripted` is the
 * CLI by the Automation API, which starts the SDK's own dynamic-provider script, as `pulumi up` in a shell does, which finds
 * the compiled providers through the state's stub.
 */
export interface EnginePair {
  hosted: GoEngine;
  scripted: {
    up(stack: string, program: Program, options?: { refresh?: boolean }): Promise<ScriptedResult>;
    destroy(stack: string): Promise<ScriptedResult>;
  };
  /** How often the CLI has started the SDK's script. */
  scriptStarts(): Promise<number>;
  close(): Promise<void>;
}

/**
 * @param environment what the shell of the `scripted` engine exports for the providers
 * @param own providers besides Kindstack's
 */
export async function openEnginePair(
  environment: Record<string, string>,
  own: readonly DefinedProvider[] = [],
): Promise<EnginePair> {
  const directory = await mkdtemp(path.join(tmpdir(), "kindstack-host-"));
  const pulumi = await resolveBinary("pulumi");
  // A project that has Kindstack among its dependencies.
  const modules = path.join(directory, "project", "node_modules");
  await mkdir(modules, { recursive: true });
  await symlink(ROOT, path.join(modules, "kindstack"));
  await symlink(path.join(ROOT, "node_modules/@pulumi"), path.join(modules, "@pulumi"));

  const starts = path.join(directory, "starts");
  await writeFile(starts, "");
  const bin = path.join(directory, "bin");
  await mkdir(bin);
  const script = async (name: string, ...lines: string[]) => {
    await writeFile(path.join(bin, name), ["#!/bin/sh", ...lines, ""].join("\n"));
    await chmod(path.join(bin, name), 0o755);
    return path.join(bin, name);
  };
  await script(PLUGIN, `echo >> '${starts}'`, `exec '${ROOT}/node_modules/@pulumi/pulumi/${PLUGIN}' "$@"`);
  const shell = await script(
    "shell-pulumi",
    "unset PULUMI_DEBUG_PROVIDERS",
    environmentFile(environment),
    `PATH='${bin}':"$PATH" exec '${pulumi}' "$@"`,
  );

  const backendUrl = `file://${directory}/state`;
  await mkdir(path.join(directory, "state"));
  const processes = await openEngine({
    file: await resolveBinary("engine"),
    workDirectory: directory,
    backendUrl,
    protection: { passphrase: { value: "passphrase" }, keyService: undefined },
    environment: process.env,
    log: { warn: () => {}, error: () => {} },
  });
  const root = path.join(directory, "cli");
  await mkdir(path.join(root, "bin"), { recursive: true });
  await symlink(shell, path.join(root, "bin/pulumi"));
  const pulumiCommand = await PulumiCommand.get({ root });
  const stackOf = (stackName: string, program: Program) =>
    LocalWorkspace.createOrSelectStack(
      { projectName: "kindstack", stackName, program: async () => program() },
      {
        workDir: path.join(directory, "project"),
        pulumiHome: path.join(directory, "home"),
        pulumiCommand,
        envVars: { PULUMI_BACKEND_URL: backendUrl, PULUMI_CONFIG_PASSPHRASE: "passphrase" },
      },
    );
  const summaryOf = ({ summary: { result, resourceChanges } }: Pick<UpResult, "summary">): ScriptedResult => {
    const { same: _, ...changes } = resourceChanges ?? {};
    return { summary: { result, resourceChanges: changes } };
  };
  const providers = new Map([...providersOf(), ...own.map(({ stub, provider }) => [stub, provider] as const)]);
  return {
    hosted: new GoEngine({ processes, host: new ProviderHost(providers), timeoutMs: 60_000 }),
    scripted: {
      async up(stack, program, options = {}) {
        return summaryOf(await (await stackOf(stack, program)).up(options));
      },
      async destroy(stack) {
        const opened = await stackOf(stack, () => {});
        const { summary } = summaryOf(await opened.destroy());
        await opened.workspace.removeStack(stack);
        const { delete: deleted = 0 } = summary.resourceChanges; // the stack itself counts as one
        return { summary: { ...summary, resourceChanges: { ...summary.resourceChanges, delete: deleted - 1 } } };
      },
    },
    scriptStarts: async () => (await readFile(starts, "utf8")).length,
    async close() {
      await processes.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

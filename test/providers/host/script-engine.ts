import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { ProviderHost } from "../../../providers/host/server";
import { providersOf } from "../../../providers/index";
import { StackEngine } from "../../../src/automation/engine";
import { openWorkspace } from "../../../src/automation/workspace";
import { environmentFile } from "../../../src/dev/environment";
import { resolvePulumi } from "../../../src/toolchain/pulumi";
import { resolveBinary } from "../../../src/toolchain/resolve";

const ROOT = path.resolve(__dirname, "../../..");
const PLUGIN = "pulumi-resource-pulumi-nodejs";

/**
 * Two engines on the same stacks: `hosted` attaches to the provider host of this process, as the operator does;
 * `scripted` lets the CLI start the SDK's own dynamic-provider script, as `pulumi up` in a shell does, which finds the
 * compiled providers through the state's stub.
 */
export interface EnginePair {
  hosted: StackEngine;
  scripted: StackEngine;
  /** How often the CLI has started the SDK's script. */
  scriptStarts(): Promise<number>;
  close(): Promise<void>;
}

/** @param environment what the shell of the `scripted` engine exports for the providers */
export async function openEnginePair(environment: Record<string, string>): Promise<EnginePair> {
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

  const host = await ProviderHost.start(providersOf());
  const log = { warn: () => {}, error: () => {} };
  const settings = {
    workDirectory: directory,
    backendUrl: `file://${directory}/state`,
    protection: { passphrase: { value: "passphrase" }, keyService: undefined },
    environment: process.env,
    attachment: host.attachment,
    log,
  };
  const workspace = await openWorkspace({ ...settings, pulumi: await resolvePulumi({}) });
  const scripted = await openWorkspace({ ...settings, pulumi: { cli: shell } });
  const options = { host, timeoutMs: 60_000, log };
  return {
    hosted: new StackEngine({ ...options, workspace }),
    scripted: new StackEngine({ ...options, workspace: scripted }),
    scriptStarts: async () => (await readFile(starts, "utf8")).length,
    async close() {
      await workspace.pulumi.close();
      host.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

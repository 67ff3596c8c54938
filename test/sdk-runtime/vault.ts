import { chmod, mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { type Output, secret } from "@pulumi/pulumi/output";
import { CustomResource, type CustomResourceOptions, ProviderResource } from "@pulumi/pulumi/resource";

/* The resources of the plugin `vault-plugin.cjs`. */

export const VAULT_TOKEN = "the-token-of-the-vault";

/** @param directory where the vault keeps its entries */
export class Vault extends ProviderResource {
  constructor(name: string, directory: string, token = VAULT_TOKEN) {
    super("vault", name, { directory, token: secret(token) });
  }
}

export class Entry extends CustomResource {
  constructor(name: string, inputs: { path: string; value: Output<string> }, options: CustomResourceOptions) {
    super("vault:index:Entry", name, inputs, options);
  }
}

/** Installs the plugin in a folder for PATH. It notes its process's number at each start, in `starts`. */
export async function installVault(folder: string): Promise<NodeJS.ProcessEnv> {
  const file = path.join(folder, "pulumi-resource-vault");
  const script = path.join(__dirname, "vault-plugin.cjs");
  await mkdir(folder, { recursive: true });
  await writeFile(file, `#!/bin/sh\necho $$ >> '${folder}/starts'\nexec '${process.execPath}' '${script}' "$@"\n`);
  await chmod(file, 0o755);
  return { ...process.env, PATH: `${folder}${path.delimiter}${process.env.PATH}` };
}

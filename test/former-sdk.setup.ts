import { existsSync } from "node:fs";
import { execa } from "execa";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  interface ProvidedContext {
    /** Pulumi's SDK that a test has to run with, and the folder to install it in; without it, that of package.json. */
    sdk?: { version: string; home: string };
  }
}

export async function setup({ config }: TestProject): Promise<void> {
  const { sdk } = config.provide;
  if (sdk === undefined || existsSync(sdk.home)) return;
  const options = ["--no-save", "--ignore-scripts", "--no-audit", "--no-fund"];
  await execa("npm", ["install", "--prefix", sdk.home, ...options, `@pulumi/pulumi@${sdk.version}`]);
}

import fs from "node:fs/promises";
import path from "node:path";
import { quoteForShell } from "../src/dev/environment";

/** The Pulumi CLI, and how often it was started. */
export interface CountedPulumi {
  /** `<root>/bin/pulumi` */
  root: string;
  file: string;
  count(): Promise<number>;
}

/**
 * A script in place of the CLI that writes one byte to a file and becomes the CLI. A millisecond or two are its price;
 * everything that is compared is started by one.
 */
export async function countedPulumi(pulumi: string, root: string): Promise<CountedPulumi> {
  const file = path.join(root, "bin", "pulumi");
  const starts = path.join(root, "starts");
  await fs.mkdir(path.dirname(file), { recursive: true });
  await fs.writeFile(starts, "");
  const lines = ["#!/bin/sh", `printf . >> ${quoteForShell(starts)}`, `exec ${quoteForShell(pulumi)} "$@"`];
  await fs.writeFile(file, `${lines.join("\n")}\n`, { mode: 0o755 });
  return { root, file, count: async () => (await fs.stat(starts)).size };
}

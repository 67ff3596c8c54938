import fs from "node:fs/promises";
import path from "node:path";
import { quoteForShell } from "../src/dev/environment";

/** The Pulumi CLI and the engine, and how often they were started. */
export interface CountedPulumi {
  /** `<root>/bin/pulumi` */
  root: string;
  cli: string;
  engine: string;
  count(): Promise<number>;
}

/**
 * Scripts in place of the CLI and the engine that write one byte to a file and become them. A millisecond or two are
 * their price; everything that is compared is started by one.
 */
export async function countedPulumi(
  programs: { pulumi: string; engine: string },
  root: string,
): Promise<CountedPulumi> {
  const starts = path.join(root, "starts");
  await fs.mkdir(path.join(root, "bin"), { recursive: true });
  await fs.writeFile(starts, "");
  const script = async (name: string, program: string) => {
    const file = path.join(root, "bin", name);
    const lines = ["#!/bin/sh", `printf . >> ${quoteForShell(starts)}`, `exec ${quoteForShell(program)} "$@"`];
    await fs.writeFile(file, `${lines.join("\n")}\n`, { mode: 0o755 });
    return file;
  };
  return {
    root,
    cli: await script("pulumi", programs.pulumi),
    engine: await script("kindstack-engine", programs.engine),
    count: async () => (await fs.stat(starts)).size,
  };
}

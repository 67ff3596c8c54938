import fs from "node:fs/promises";
import path from "node:path";
import { execa } from "execa";
import type { Source } from "../src/toolchain/tool";

/**
 * A program of the distribution's, with the libraries of its own, from apt's archive: unpacked and not installed, which
 * needs no root.
 */
export function debianPackage(wanted: {
  package: string;
  /** The program's file in the package; where that is `$1` in a folder, the first argument says which one. `*` is a version. */
  program: string;
  /** Which of the packages that it depends on, directly or through others of these, are not on every machine. */
  dependencies: RegExp;
}): Source {
  return {
    label: "apt-get download",
    estimatedSeconds: 10,
    async make({ file, scratch, signal }) {
      const run = (command: string, ...args: string[]) => execa(command, args, { cwd: scratch, cancelSignal: signal });
      const download = async (...options: string[]) => {
        const packages = new Set([wanted.package]);
        for (const name of packages) {
          const { stdout } = await run("apt-cache", ...options, "depends", name);
          const needed = [...stdout.matchAll(/Depends: (\S+)/g)].map(([, name = ""]) => name);
          for (const one of needed.filter((name) => wanted.dependencies.test(name))) packages.add(one);
        }
        await run("apt-get", ...options, "download", ...packages);
      };
      // Where the machine has no lists of packages, as in most images of containers, they are fetched aside.
      await download().catch(async () => {
        const aside = ["state", "cache"].map((name) => path.join(scratch, name));
        for (const folder of [`${aside[0]}/lists/partial`, `${aside[1]}/archives/partial`]) {
          await fs.mkdir(folder, { recursive: true });
        }
        const options = [`Dir::State::lists=${aside[0]}/lists`, `Dir::Cache=${aside[1]}`].flatMap((o) => ["-o", o]);
        await run("apt-get", ...options, "update");
        await download(...options);
      });
      const home = path.join(path.dirname(file), "root");
      for (const name of await fs.readdir(scratch)) {
        if (name.endsWith(".deb")) await run("dpkg-deb", "--extract", path.join(scratch, name), home);
      }
      await fs.writeFile(file, startScript(wanted.program), { mode: 0o755 });
    },
  };
}

/** Starts the program with the libraries beside it, from whichever folder both are in. */
function startScript(program: string): string {
  return `#!/bin/sh
root="$(dirname "$0")/root"
for folder in "$root"/usr/lib/*-linux-*; do LD_LIBRARY_PATH="$folder:$LD_LIBRARY_PATH"; done
export LD_LIBRARY_PATH
for program in "$root"/${program}; do :; done
${program.endsWith("$1") ? "shift\n" : ""}exec "$program" "$@"
`;
}

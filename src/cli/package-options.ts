import { resolve } from "node:path";
import { type Command, Option } from "commander";
import type { Logger } from "pino";
import { listItems } from "../../providers/list-items";
import type { LoadedKinds } from "../../stacks/kinds/catalog";
import { Packages } from "../packages/packages";
import { KINDS_FLAG, kindsDescription } from "./kinds-option";
import { positive } from "./parse-options";

/** For a command that serves kinds, those of packages in processes of their own. */
export interface PackageOptions {
  /** Words for {@link loadKinds}. */
  kinds?: readonly string[];
  kindTimeout: number;
  kindMemory: number;
  kindIdle: number;
  kindFiles: string[];
  kindAddons: boolean;
}

export function withPackageOptions(command: Command): Command {
  return command
    .addOption(
      new Option(KINDS_FLAG, kindsDescription("kinds to serve")).argParser(
        (text, previous: readonly string[] = []): string[] => [...previous, ...listItems(text)],
      ),
    )
    .option("--kind-timeout <seconds>", "time for a function of a package's kind, besides its providers", positive, 60)
    .option("--kind-memory <MiB>", "memory for the process of each package of kinds", positive, 256)
    .option("--kind-idle <seconds>", "how long an idle process of a package is kept", positive, 30)
    .addOption(
      new Option(
        "--kind-files <paths...>",
        "files and folders that packages of kinds may write, outside of the folders of kinds",
      ).default([], "none"),
    )
    .option("--kind-addons", "packages of kinds may load native add-ons, which are held to no limits", false);
}

/** The same options for another process of the command line, without the kinds. */
export function packageWords(options: PackageOptions): string[] {
  const { kindTimeout, kindMemory, kindIdle, kindFiles, kindAddons } = options;
  const limits = { "--kind-timeout": kindTimeout, "--kind-memory": kindMemory, "--kind-idle": kindIdle };
  return [
    ...Object.entries(limits).flatMap(([flag, value]) => [flag, String(value)]),
    ...kindFiles.flatMap((file) => ["--kind-files", resolve(file)]),
    ...(kindAddons ? ["--kind-addons"] : []),
  ];
}

export function openPackages(options: PackageOptions, logger: Logger): Packages {
  const { kindTimeout, kindMemory, kindIdle, kindFiles, kindAddons } = options;
  const limits = {
    timeoutMs: kindTimeout * 1000,
    memoryMib: kindMemory,
    writable: kindFiles.map((path) => resolve(path)),
    addons: kindAddons,
  };
  return new Packages({ limits, idleMs: kindIdle * 1000, environment: process.env, logger });
}

/** The chosen kinds; ends the command as wrongly used for a word that means no kind. */
export async function chosenKinds(
  command: Command,
  packages: Packages,
  { kinds }: Pick<PackageOptions, "kinds">,
): Promise<LoadedKinds> {
  try {
    return await packages.load(kinds);
  } catch (error) {
    if (error instanceof RangeError) command.error(`error: option '${KINDS_FLAG}' is invalid. ${error.message}.`);
    throw error;
  }
}

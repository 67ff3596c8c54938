import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { Command } from "commander";
import { sampleOf } from "../../stacks/kinds/catalog";
import { exampleOf, kindPage, pageName } from "../scaffold/kind-page";
import { allKinds, type KindsOption, kindsOption } from "./kinds-option";

export function docsCommand(): Command {
  return new Command("docs")
    .description("write a page for the users of each kind: fields, defaults, an example, conditions")
    .addOption(kindsOption("kinds to describe"))
    .option("--dir <folder>", "write a Markdown file for each kind there, instead of standard output")
    .addHelpText("after", "\nExample:\n  kindstack docs --kinds ./src --dir docs")
    .action(({ dir, ...options }: KindsOption & { dir?: string }) => {
      if (dir !== undefined) mkdirSync(dir, { recursive: true });
      const kinds = allKinds(options);
      for (const kind of kinds) {
        const sample = sampleOf(kind);
        const page = `${kindPage(kind, sample && exampleOf(kind, kinds, readFileSync(sample, "utf8")))}\n`;
        if (dir === undefined) process.stdout.write(page);
        else writeFileSync(path.join(dir, pageName(kind)), page);
      }
    });
}

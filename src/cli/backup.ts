import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { withScratch } from "../automation/workspace";
import { type Backend, restore, writeBackup } from "../backup/backup";
import { readStream, writeStream } from "../backup/stream";
import { passphraseOf, readStateConfig } from "../config";
import { STATES_HELP, withStates } from "./open-stacks";
import { Progress } from "./progress";

/** Number of stacks between two updates of the progress. */
const STEP = 50;
/** In place of a directory. */
const STREAM = "-";

export function backupCommand(): Command {
  return new Command("backup")
    .description("write the state of all stacks to files; the operator may keep running")
    .argument("<directory>", "target directory, which must be empty or absent; - for standard output")
    .addHelpText(
      "after",
      `\nExamples:\n  kindstack backup state-backup\n  kindstack backup - > state-backup.jsonl\n${STATES_HELP}`,
    )
    .action((directory: string) =>
      withBackend(`backup to ${directory}`, (backend) =>
        withScratch(tmpdir(), "kindstack-backup", async (scratch) => {
          const files = directory === STREAM ? join(scratch, "backup") : directory;
          const count = await writeBackup(files, backend);
          if (directory !== STREAM) return `wrote ${count} stacks to ${directory}`;
          await writeStream(files, process.stdout);
          process.stderr.write(`wrote ${count} stacks\n`);
          return undefined;
        }),
      ),
    );
}

export function restoreCommand(): Command {
  return new Command("restore")
    .description("write the stacks of a backup to the backend; stop the operator first")
    .argument("<directory>", "directory that `kindstack backup` wrote; - for standard input")
    .option("--overwrite", "replace the state of stacks that exist", false)
    .addHelpText("after", `\nExample:\n  kindstack restore state-backup\n${STATES_HELP}`)
    .action((directory: string, { overwrite }: { overwrite: boolean }) =>
      withBackend(`restore from ${directory}`, (backend) =>
        withScratch(tmpdir(), "kindstack-restore", async (scratch) => {
          if (directory === STREAM) await readStream(scratch, process.stdin);
          const passphrase = await passphraseOf(readStateConfig(process.env).protection);
          const options = { overwrite, passphrase };
          const { count, sealed } = await restore(directory === STREAM ? scratch : directory, backend, options);
          if (sealed.length > 0) process.stderr.write(`${anotherPassphrase(sealed)}\n`);
          return `restored ${count} stacks`;
        }),
      ),
    );
}

function anotherPassphrase(stacks: readonly string[]): string {
  return (
    `warning: the secrets of ${stacks.length} stacks are encrypted with another passphrase: ${stacks.join(", ")}. Nothing of their ` +
    "objects is updated or deleted until each has the present one, with PULUMI_CONFIG_PASSPHRASE set to the former one: " +
    "pulumi stack change-secrets-provider passphrase --stack <stack>"
  );
}

/** @param run returns the summary to print, if that is not printed yet */
async function withBackend(what: string, run: (backend: Backend) => Promise<string | undefined>): Promise<void> {
  const progress = new Progress();
  const onStack = (count: number, all?: number) => {
    if (count % STEP === 0) progress.detail(all === undefined ? `${count} stacks` : `${count} of ${all} stacks`);
  };
  const summary = await withStates(progress, (engine, signal, { backendUrl: url }) => {
    progress.begin(what);
    return run({ engine, url, signal, onStack });
  });
  progress.done();
  if (summary) process.stdout.write(`${summary}\n`);
}

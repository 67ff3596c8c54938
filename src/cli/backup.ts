import { Command } from "commander";
import { TerminalError } from "../../providers/errors";
import { restore, writeBackup } from "../backup/backup";
import { type StateBackend, withStateBackend } from "../backup/state-backend";
import { readStateConfig } from "../config";
import { resolvePulumi } from "../toolchain/pulumi";
import { Progress } from "./progress";
import { untilInterrupted } from "./until-interrupted";

const HELP = `
Environment:
  PULUMI_BACKEND_URL                where the operator keeps the state
  AWS_…, GOOGLE_…, AZURE_…          credentials for s3://, gs:// and azblob://, as pulumi reads them
  PULUMI_CONFIG_PASSPHRASE[_FILE], KINDSTACK_SECRETS_PROVIDER
                                    the state's encryption; secrets stay encrypted in a backup`;
/** Number of stacks between two updates of the progress. */
const STEP = 50;

export function backupCommand(): Command {
  return new Command("backup")
    .description("write the state of all stacks to files; the operator may keep running")
    .argument("<directory>", "target directory; it must be empty or absent")
    .addHelpText("after", `\nExample:\n  kindstack backup state-backup\n${HELP}`)
    .action((directory: string) =>
      withBackend(
        `backup to ${directory}`,
        async (backend, onStack) => `wrote ${await writeBackup(directory, backend, onStack)} stacks to ${directory}`,
      ),
    );
}

export function restoreCommand(): Command {
  return new Command("restore")
    .description("write the stacks of a backup to the backend; stop the operator first")
    .argument("<directory>", "directory that `kindstack backup` wrote")
    .option("--overwrite", "replace the state of stacks that exist", false)
    .addHelpText("after", `\nExample:\n  kindstack restore state-backup\n${HELP}`)
    .action((directory: string, { overwrite }: { overwrite: boolean }) =>
      withBackend(
        `restore from ${directory}`,
        async (backend, onStack) => `restored ${await restore(directory, backend, { overwrite, onStack })} stacks`,
      ),
    );
}

/** @param run calls `onStack` for each finished stack; returns the summary to print */
async function withBackend(
  what: string,
  run: (backend: StateBackend, onStack: (count: number, all?: number) => void) => Promise<string>,
): Promise<void> {
  if (!process.env.PULUMI_BACKEND_URL) {
    throw new TerminalError("Misconfigured", "PULUMI_BACKEND_URL must name the backend that the operator uses");
  }
  const progress = new Progress();
  const onStack = (count: number, all?: number) => {
    if (count % STEP === 0) progress.detail(all === undefined ? `${count} stacks` : `${count} of ${all} stacks`);
  };
  try {
    const summary = await untilInterrupted(async (signal) => {
      const pulumi = await resolvePulumi({ signal, observe: progress.observeTools, make: false });
      progress.begin(what);
      return withStateBackend(readStateConfig(process.env), pulumi, signal, (backend) => run(backend, onStack));
    });
    progress.done();
    process.stdout.write(`${summary}\n`);
  } catch (error) {
    progress.fail();
    throw error;
  }
}

import { Command } from "commander";
import { execa } from "execa";
import { KeyService } from "../automation/key-service";
import { readStateConfig } from "../config";

export function keysCommand(): Command {
  return new Command("keys")
    .description("run a command, such as pulumi, with the keys of stacks that the operator's own key service protects")
    .argument("<command>", "what to run")
    .argument("[words...]", "its options and arguments")
    .passThroughOptions()
    .addHelpText(
      "after",
      `
Environment:
  PULUMI_CONFIG_PASSPHRASE[_FILE]   what the keys are derived of

Example:
  kindstack keys pulumi stack change-secrets-provider passphrase --stack "$stack"`,
    )
    .action(runWithKeys);
}

async function runWithKeys(command: string, words: string[]): Promise<void> {
  const { protection } = readStateConfig({ ...process.env, KINDSTACK_SECRETS_PROVIDER: "own" });
  const service = await KeyService.startIfUsed(protection, process.env);
  const onInterrupt = () => {}; // the terminal tells the command as well, which ends in its own way
  process.on("SIGINT", onInterrupt);
  try {
    const env = service?.environmentOf(process.env) ?? process.env;
    const { exitCode, failed, shortMessage } = await execa(command, words, {
      stdio: "inherit",
      env,
      extendEnv: false,
      reject: false,
    });
    if (failed) throw new Error(exitCode === undefined ? shortMessage : `${command} has ended with ${exitCode}`);
  } finally {
    process.off("SIGINT", onInterrupt);
    await service?.close();
  }
}

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { RetryableError } from "../../providers/errors";
import type { Backend } from "./backend";
import { withoutPasswords } from "./failures";
import { readUrns } from "./file-backend";
import { type CommandResult, type PulumiOptions, runPulumi } from "./pulumi";
import { withScratch } from "./scratch";

/** A backend that only Pulumi's commands can read and write: `s3://`, `gs://`, `azblob://`. */
export function commandBackend(options: PulumiOptions): Backend {
  const { scratchDirectory } = options.workspace;
  const exportTo = (file: string, stack: string, signal?: AbortSignal) =>
    runPulumi(options, ["stack", "export", "--file", file, "--stack", stack], { signal });
  const backend: Backend = {
    isDirect: false,

    async createMissing() {},

    recorded: (stack, signal) =>
      withScratch(scratchDirectory, "state", async (scratch) => {
        const file = join(scratch, "state.json");
        return isThere(await exportTo(file, stack, signal), `the stack ${stack} could not be read`)
          ? readUrns(file)
          : undefined;
      }),

    names: async () => [],

    async remove(stack, signal) {
      const result = await runPulumi(options, ["stack", "rm", stack, "--force", "--yes"], { signal });
      isThere(result, `the stack ${stack} could not be removed`);
    },

    async cutHistory() {},

    forgetPendingCreates: (stack) =>
      withScratch(scratchDirectory, "pending", async (scratch) => {
        const file = join(scratch, "state.json");
        if ((await exportTo(file, stack)).exitCode !== 0) return; // the update will say what is wrong
        const state = JSON.parse(await readFile(file, "utf8")) as { deployment?: { pending_operations?: unknown[] } };
        const { pending_operations: pending = [], ...rest } = state.deployment ?? {};
        if (pending.length === 0) return;
        await writeFile(file, JSON.stringify({ ...state, deployment: rest }), { mode: 0o600 });
        await runPulumi(options, ["stack", "import", "--file", file, "--stack", stack]);
      }),

    removeTornLocks: async () => [],

    async unlock(stack, cancel) {
      await cancel(); // only the holder of the lock may write a state
      await backend.forgetPendingCreates(stack);
    },

    look: (_stack, _what, read) => read({}),
  };
  return backend;
}

/** Whether there is the stack that a command was about. @throws RetryableError `Unreadable` when it failed otherwise */
function isThere({ exitCode, stderr, error }: CommandResult, failure: string): boolean {
  if (exitCode === 0) return true;
  if (error?.kind === "stackNotFound") return false;
  throw new RetryableError("Unreadable", `${failure}: ${withoutPasswords(stderr.trim())}`);
}

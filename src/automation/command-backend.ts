import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Backend, ReadableStack } from "./backend";
import { askPulumi, type PulumiOptions, runPulumi } from "./pulumi";
import { withScratch } from "./scratch";
import type { StackState } from "./stack-state";

/** A backend that only Pulumi's commands can read and write: `s3://`, `gs://`, `azblob://`. */
export class CommandBackend implements Backend {
  readonly isDirect: boolean = false;
  readonly #options: PulumiOptions;

  constructor(options: PulumiOptions) {
    this.#options = options;
  }

  state(stack: string, signal?: AbortSignal): Promise<StackState | undefined> {
    // Through a file: what a command prints is cut.
    return withScratch(this.#options.workspace.scratchDirectory, "state", async (scratch) => {
      const file = join(scratch, "state.json");
      const args = ["stack", "export", "--file", file, "--stack", stack];
      const found = await askPulumi(this.#options, args, `the stack ${stack} could not be read`, { signal });
      return found === undefined ? undefined : (JSON.parse(await readFile(file, "utf8")) as StackState);
    });
  }

  async names(signal?: AbortSignal): Promise<string[]> {
    const args = ["stack", "ls", "--json"];
    const list = await askPulumi(this.#options, args, "the stacks could not be listed", { signal });
    const stacks = JSON.parse(list ?? "[]") as { name: string }[];
    return stacks.map(({ name }) => name.split("/").at(-1) ?? name);
  }

  async remove(stack: string, signal?: AbortSignal): Promise<void> {
    const args = ["stack", "rm", stack, "--force", "--yes"];
    await askPulumi(this.#options, args, `the stack ${stack} could not be removed`, { signal });
  }

  async forgetPendingCreates(stack: string): Promise<void> {
    const state = await this.state(stack).catch(() => undefined); // the update will say what is wrong
    const { pending_operations: pending, ...deployment } = state?.deployment ?? {};
    if (!pending?.length) return;
    await withScratch(this.#options.workspace.scratchDirectory, "pending", async (scratch) => {
      const file = join(scratch, "state.json");
      await writeFile(file, JSON.stringify({ ...state, deployment }), { mode: 0o600 });
      await runPulumi(this.#options, ["stack", "import", "--file", file, "--stack", stack]);
    });
  }

  async unlock(stack: string, cancel: () => Promise<unknown>): Promise<void> {
    await cancel(); // only the holder of the lock may write a state
    await this.forgetPendingCreates(stack);
  }

  look<T>(
    _stack: string,
    _what: "checkpoint" | "history",
    read: (stack: ReadableStack) => Promise<T>,
  ): Promise<T | undefined> {
    return read({});
  }
}

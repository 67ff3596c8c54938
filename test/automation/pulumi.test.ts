import { describe, expect, it } from "vitest";
import { askPulumi, type CommandResult, type Pulumi, type Workspace } from "../../src/automation/pulumi";

/** Asks with a command that ends like this. */
function ask(result: Partial<CommandResult>): Promise<string | undefined> {
  const run: Pulumi["run"] = async () => ({ exitCode: 1, stdout: "", stderr: "", events: "", ...result });
  const workspace = { pulumi: { run } } as unknown as Workspace;
  return askPulumi({ workspace, timeoutMs: 1_000 }, ["stack", "ls"], "the stacks could not be listed", {});
}

describe("a question to Pulumi", () => {
  it("is answered by what the command prints", async () => {
    expect(await ask({ exitCode: 0, stdout: "[]" })).toBe("[]");
  });

  it("about a stack that does not exist has no answer", async () => {
    expect(await ask({ error: { kind: "stackNotFound", message: "no stack" } })).toBeUndefined();
  });

  it("fails in the command's words, but without the password in a backend's URL", async () => {
    await expect(ask({ stderr: "error: cannot open postgres://me:s3cret@db/state\n" })).rejects.toMatchObject({
      reason: "Unreadable",
      message: "the stacks could not be listed: error: cannot open postgres://me:***@db/state",
    });
  });

  it.each<[Partial<CommandResult>, string]>([
    [{ interrupted: "timeout" }, "timeout"],
    [{ signal: "SIGKILL" }, "SIGKILL"],
    [{ exitCode: 255 }, "exit code 255"],
  ])("says how a command ended that printed nothing: %j", async (result, words) => {
    await expect(ask(result)).rejects.toThrow(`the stacks could not be listed: ${words}`);
  });
});

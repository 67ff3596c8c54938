import { join } from "node:path";
import { execa, execaSync } from "execa";
import { describe, expect, it } from "vitest";
import { packageRoot } from "../../src/package";

const hasGo = execaSync("go", ["version"], { reject: false }).exitCode === 0;

describe.skipIf(!hasGo)(`the engine's own tests (${hasGo ? "by Go" : "Go is not installed"})`, () => {
  const go = (command: string, ...options: string[]) =>
    execa(command, options, { cwd: join(packageRoot, "tools/engine"), reject: false, all: true });

  it("are formatted, vetted and pass", { timeout: 600_000 }, async () => {
    expect((await go("gofmt", "-l", ".")).stdout).toBe("");
    const tested = await go("go", "test", "./..."); // vets as well; what has not changed is not run again
    expect(tested.exitCode, tested.all).toBe(0);
  });
});

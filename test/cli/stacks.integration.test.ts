import { execFileSync } from "node:child_process";
import path from "node:path";
import { expect, it } from "vitest";
import { testDirectory } from "../directories";

const MAIN = path.resolve(__dirname, "../../dist/src/cli/main.js");

it("says that a backend has no stacks, which is an empty list to programs", () => {
  const state = testDirectory();
  const run = (...words: string[]) =>
    execFileSync(process.execPath, [MAIN, "stacks", ...words], {
      encoding: "utf8",
      env: { ...process.env, PULUMI_BACKEND_URL: `file://${state}`, PULUMI_CONFIG_PASSPHRASE: "p" },
    });
  expect(run()).toBe("no stacks\n");
  expect(run("-o", "json")).toBe("[]\n");
});

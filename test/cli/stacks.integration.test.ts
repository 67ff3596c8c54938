import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { expect, it } from "vitest";

const MAIN = path.resolve(__dirname, "../../dist/src/cli/main.js");

it("says that a backend has no stacks, which is an empty list to programs", () => {
  const state = fs.mkdtempSync(path.join(os.tmpdir(), "kindstack-state-"));
  const run = (...words: string[]) =>
    execFileSync(process.execPath, [MAIN, "stacks", ...words], {
      encoding: "utf8",
      env: { ...process.env, PULUMI_BACKEND_URL: `file://${state}`, PULUMI_CONFIG_PASSPHRASE: "p" },
    });
  try {
    expect(run()).toBe("no stacks\n");
    expect(run("-o", "json")).toBe("[]\n");
  } finally {
    fs.rmSync(state, { recursive: true });
  }
});

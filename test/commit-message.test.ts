import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { useDirectory } from "./directories";

const HOOK = path.resolve(__dirname, "../.githooks/commit-msg");
const directory = useDirectory();

/** What the hook answers; empty when it accepts the message. */
function answerTo(message: string): string {
  const file = path.join(directory, "COMMIT_EDITMSG");
  fs.writeFileSync(file, message);
  const { status, stderr } = spawnSync(HOOK, [file], { encoding: "utf8" });
  return status === 0 ? "" : stderr;
}

describe("the check of commit messages", () => {
  it.each([
    "watcher: restore a lost finalizer\n\nAn object without it leaks its row.\n",
    "Pass the reason on\n",
    "test, bench: press on\n",
    `${"a".repeat(4)} ${"b".repeat(67)}\n`,
    "Merge branch 'main'\n",
  ])("accepts %j", (message) => {
    expect(answerTo(message)).toBe("");
  });

  it.each([
    ["", "has no subject"],
    [`Restore ${"x".repeat(65)}\n`, "longer than 72 characters"],
    ["Restore a finalizer\nthat is lost\n", "is not blank"],
    ["Restore a finalizer.\n", "ends with a period"],
    ["watcher: restores a finalizer\n", 'imperative: "restores"'],
    ["Restored a finalizer\n", 'imperative: "restored"'],
  ])("refuses %j", (message, answer) => {
    expect(answerTo(message)).toContain(answer);
  });
});

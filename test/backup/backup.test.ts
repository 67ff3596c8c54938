import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { writeBackup } from "../../src/backup/backup";

it("is not begun where a file is, or a directory with files", async () => {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), "kindstack-backup-test-"));
  onTestFinished(() => fs.rmSync(home, { recursive: true }));
  const file = path.join(home, "file");
  fs.writeFileSync(file, "");
  const engine = { exportAll: vi.fn(), listStacks: vi.fn(), importStack: vi.fn() };
  const backend = { engine, url: "file:///", signal: new AbortController().signal, onStack: () => {} };
  for (const target of [file, home]) {
    await expect(writeBackup(target, backend)).rejects.toThrow(`${target} is not an empty directory`);
  }
  expect(engine.exportAll).not.toHaveBeenCalled();
});

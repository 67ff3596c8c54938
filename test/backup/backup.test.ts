import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { restore, writeBackup } from "../../src/backup/backup";

const engine = { exportAll: vi.fn(), listStacks: vi.fn(), importStack: vi.fn() };
const backend = { engine, url: "file:///", signal: new AbortController().signal, onStack: () => {} };
let home: string;
beforeEach(() => {
  home = fs.mkdtempSync(path.join(os.tmpdir(), "kindstack-backup-test-"));
});
afterEach(() => fs.rmSync(home, { recursive: true }));

it("is not begun where a file is, or a directory with files", async () => {
  const file = path.join(home, "file");
  fs.writeFileSync(file, "");
  for (const target of [file, home]) {
    await expect(writeBackup(target, backend)).rejects.toThrow(`${target} is not an empty directory`);
  }
  expect(engine.exportAll).not.toHaveBeenCalled();
});

it("is told from one that cannot be read", async () => {
  const read = () => restore(home, backend, { overwrite: false, passphrase: undefined });
  await expect(read()).rejects.toThrow(`${home} is not a backup: it has no backup.json`);
  fs.mkdirSync(path.join(home, "backup.json")); // what no user can read as a file
  await expect(read()).rejects.toThrow("EISDIR");
});

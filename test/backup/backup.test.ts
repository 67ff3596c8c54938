import fs from "node:fs";
import path from "node:path";
import { beforeEach, expect, it, vi } from "vitest";
import { restore, writeBackup } from "../../src/backup/backup";
import { testDirectory } from "../directories";

const engine = { exportAll: vi.fn(), listStacks: vi.fn(), importStack: vi.fn() };
const backend = { engine, url: "file:///", signal: new AbortController().signal, onStack: () => {} };
let home: string;
beforeEach(() => {
  home = testDirectory();
});

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

import fs from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FolderWatch } from "../../src/dev/folder-watch";
import { eventually } from "../../src/testing/eventually";
import { testDirectory } from "../directories";

let root: string;
let folder: string;
let changed: (string | null)[];
let watch: FolderWatch;

beforeEach(() => {
  root = testDirectory();
  folder = path.join(root, "kind");
  fs.mkdirSync(folder);
  changed = [];
  watch = new FolderWatch(
    (name) => changed.push(name),
    (error) => expect.fail(String(error)),
  );
  watch.watch(folder);
});
afterEach(() => {
  watch.close();
});

async function seesChanges(): Promise<void> {
  changed.length = 0;
  fs.writeFileSync(path.join(folder, "kind.ts"), String(Math.random()));
  await eventually(() => expect(changed).toContain("kind.ts"));
}

describe("a watched folder", () => {
  it("tells what changes in it", seesChanges);

  it("is watched again when it is made again at once", async () => {
    fs.rmSync(folder, { recursive: true });
    fs.mkdirSync(folder);

    await eventually(() => expect(changed).toContain(null));
    await seesChanges();
  });

  it("is watched again when it comes back later, with the folder above it", async () => {
    fs.renameSync(root, `${root}-elsewhere`);
    fs.rmSync(`${root}-elsewhere`, { recursive: true });
    await eventually(() => expect(watch.folders).toEqual([]));
    fs.mkdirSync(folder, { recursive: true });

    await eventually(() => expect(changed).toContain(null));
    await seesChanges();
  });
});

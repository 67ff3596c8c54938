import fs from "node:fs";
import path from "node:path";
import pino from "pino";
import { beforeEach, describe, expect, it } from "vitest";
import { KindWatch } from "../../src/dev/kind-watch";
import { eventually } from "../../src/testing/eventually";
import { kinds } from "../../stacks/kinds/index";
import { testDirectory } from "../directories";

let folder: string;
let lines: string[];

beforeEach(() => {
  folder = testDirectory();
  lines = [];
});

/** Watches a folder beside the built-in kinds. Uncompiled, it lies beside no thread for types, so that the thread fails. */
function watchKinds(): KindWatch {
  const file = path.join(folder, "index.ts");
  fs.writeFileSync(file, "");
  const unused = (): never => expect.fail("no kind is edited");
  const chosen = { words: ["all"], kinds, entries: [file], files: [file], problems: [] };
  return new KindWatch({
    chosen,
    load: async () => chosen,
    kinds: [...kinds],
    client: {} as never,
    host: { serve: unused },
    operator: { serve: unused, withdraw: unused },
    keep: () => undefined,
    prepare: unused,
    restartAdmission: unused,
    signal: new AbortController().signal,
    logger: pino({}, { write: (line) => lines.push(line) }),
  });
}

describe("the thread that checks the types of edits", () => {
  it("leaves them unchecked, but applied, when it has failed", async () => {
    const watch = watchKinds();
    await eventually(() => expect(lines.join()).toContain("types are not checked from now on"));
    fs.writeFileSync(path.join(folder, "index.ts"), "// edited");
    await eventually(() => expect(lines.join()).toContain("edit changes no served kind"));
    await watch.close();
  });

  it("follows a line that says that the edit is seen", async () => {
    const watch = watchKinds();
    fs.writeFileSync(path.join(folder, "index.ts"), "// edited");
    await eventually(() => expect(lines.join()).toContain("edit changes no served kind"));
    const [seen, applied] = ["edit is seen", "edit changes no served kind"].map((text) =>
      lines.findIndex((line) => line.includes(text)),
    ) as [number, number];
    expect(seen).toBeGreaterThanOrEqual(0);
    expect(seen).toBeLessThan(applied);
    expect(JSON.parse(lines[seen] ?? "")).toMatchObject({ file: "index.ts" });
    await watch.close();
  });

  it("is not waited for when the watch ends", async () => {
    await watchKinds().close();
    expect(lines.join()).not.toContain("edit was not applied");
  });
});

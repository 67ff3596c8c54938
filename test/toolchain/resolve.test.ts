import fs from "node:fs/promises";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { resolveBinary } from "../../src/toolchain/resolve";
import type { Source, Tool, ToolEvent } from "../../src/toolchain/tool";
import { testDirectory } from "../directories";

let root: string;

beforeEach(async () => {
  root = testDirectory();
  vi.stubEnv("PATH", path.join(root, "bin"));
  vi.stubEnv("KINDSTACK_CACHE_DIR", path.join(root, "cache"));
  await fs.mkdir(path.join(root, "bin"));
});

afterEach(() => void vi.unstubAllEnvs());

/** A program that tells a version. */
async function program(file: string, version: string): Promise<string> {
  await fs.writeFile(file, `#!/bin/sh\necho "hammer version v${version} go1.26"\n`, { mode: 0o755 });
  return file;
}

const hammer = (...sources: Source[]): Tool => {
  return { name: "hammer", version: "1.2.3", versionArguments: ["--version"], sources };
};
const source = (label: string, make: Source["make"]): Source => ({ label, estimatedSeconds: 1, make });
const forge = source("forge", async ({ file }) => void (await program(file, "1.2.3")));
const closedShop = source("shop", () => Promise.reject(new Error("it is closed")));
const home = () => path.join(root, "cache", "hammer");

describe("where a tool comes from", () => {
  it("is the file that its variable names, before everything else", async () => {
    await program(path.join(root, "bin", "hammer"), "1.2.3");
    const named = await program(path.join(root, "mine"), "1.2.3");
    vi.stubEnv("KINDSTACK_HAMMER", named);

    expect(await resolveBinary(hammer(forge))).toBe(named);
  });

  it("is not a named file of another version: that is an error", async () => {
    const named = await program(path.join(root, "mine"), "1.2.2");

    vi.stubEnv("KINDSTACK_HAMMER", named);

    await expect(resolveBinary(hammer(forge))).rejects.toThrow(
      `KINDSTACK_HAMMER names ${named}, which is hammer 1.2.2; 1.2.3 is needed. Name another file or unset KINDSTACK_HAMMER.`,
    );
  });

  it("is not a named file that does not exist: that is an error", async () => {
    vi.stubEnv("KINDSTACK_HAMMER", path.join(root, "nothing"));

    await expect(resolveBinary(hammer(forge))).rejects.toThrow("the file does not exist");
  });

  it("is the first of the right version on PATH", async () => {
    await program(path.join(root, "bin", "hammer"), "1.2.4");
    await fs.mkdir(path.join(root, "other"));
    const right = await program(path.join(root, "other", "hammer"), "1.2.3");
    vi.stubEnv("PATH", `${process.env.PATH}:${path.join(root, "other")}`);

    expect(await resolveBinary(hammer(forge))).toBe(right);
  });

  it("is the cache, once it was made", async () => {
    const made = await resolveBinary(hammer(forge));
    const again = await resolveBinary(hammer(closedShop));

    expect(made).toBe(path.join(home(), "1.2.3", "hammer"));
    expect(again).toBe(made);
  });

  it("is the first source that works, and each failure is told", async () => {
    const events: ToolEvent[] = [];

    await resolveBinary(hammer(closedShop, forge), { observe: (event) => events.push(event) });

    expect(events).toMatchObject([
      { type: "making", source: closedShop },
      { type: "failed", source: closedShop, reason: "it is closed" },
      { type: "making", source: forge },
      { type: "made", source: forge },
    ]);
  });

  it("is no source that yields another version", async () => {
    const wrong = source("wrong forge", async ({ file }) => void (await program(file, "9.9.9")));

    await expect(resolveBinary(hammer(wrong))).rejects.toThrow("wrong forge: it is 9.9.9, not 1.2.3");
  });
});

it("a tool that cannot be had says of every source why, and what can be done", async () => {
  await program(path.join(root, "bin", "hammer"), "1.2.4");
  const noForge = source("go build", () => Promise.reject(new Error("Go is not installed")));

  await expect(resolveBinary(hammer(closedShop, noForge))).rejects.toThrow(
    [
      "hammer 1.2.3 could not be found or made:",
      "  - KINDSTACK_HAMMER: not set",
      `  - PATH: ${path.join(root, "bin", "hammer")} is 1.2.4`,
      `  - cache: no ${path.join(home(), "1.2.3", "hammer")}`,
      "  - shop: it is closed",
      "  - go build: Go is not installed",
      "Install Go 1.26 or later, so that it can be built, or set KINDSTACK_HAMMER to a file of this version.",
    ].join("\n"),
  );
  expect(await fs.readdir(home())).toEqual([]);
});

describe("the cache", () => {
  it("has a tool made once when two want it at the same time; the other waits", async () => {
    let making = 0;
    const events: ToolEvent["type"][] = [];
    const { promise: finished, resolve: finish } = Promise.withResolvers<void>();
    const slow = source("slow forge", async (paths) => {
      making++;
      await finished;
      await forge.make(paths);
    });
    const observe = ({ type }: ToolEvent) => {
      events.push(type);
      if (type === "waiting") finish();
    };

    const binaries = await Promise.all([1, 2].map(() => resolveBinary(hammer(slow), { observe })));

    expect(making).toBe(1);
    expect(new Set(binaries)).toEqual(new Set([path.join(home(), "1.2.3", "hammer")]));
    expect(new Set(events.slice(0, 2))).toEqual(new Set(["making", "waiting"])); // either process is told first
    expect(events.slice(2)).toEqual(["made", "waited"]);
  });

  it("holds nothing of what was interrupted", async () => {
    const interruption = new AbortController();
    const endless = source("endless forge", async ({ file }) => {
      await fs.writeFile(file, "half of it");
      interruption.abort(new Error("enough"));
    });

    const { signal } = interruption;
    await expect(resolveBinary(hammer(endless, forge), { signal })).rejects.toThrow("enough");
    expect(await fs.readdir(home())).toEqual([]);
  });

  it("has a tool made again whose file was deleted, whatever else is left of it", async () => {
    const made = await resolveBinary(hammer(forge));
    await fs.writeFile(path.join(path.dirname(made), "LICENSE"), "");
    await fs.rm(made);

    expect(await resolveBinary(hammer(forge))).toBe(made);
    expect(await fs.readdir(path.dirname(made))).toEqual(["hammer"]);
  });

  it("is rid of what a killed process left, its lock included, at the next run", async () => {
    await fs.mkdir(path.join(home(), ".making-killed", "made"), { recursive: true });
    await fs.mkdir(path.join(home(), ".lock"));
    const longAgo = new Date(Date.now() - 3_600_000);
    await fs.utimes(path.join(home(), ".lock"), longAgo, longAgo);

    expect(await resolveBinary(hammer(forge))).toBe(path.join(home(), "1.2.3", "hammer"));
    expect(await fs.readdir(home())).toEqual(["1.2.3"]);
  });
});

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";

const ROOT = path.resolve(__dirname, "../..");
const { bin, exports } = JSON.parse(readFileSync(path.join(ROOT, "package.json"), "utf8"));
const { main } = parse(readFileSync(path.join(ROOT, "Pulumi.yaml"), "utf8"));
const files: string[] = [bin.kindstack, main, ...Object.values(exports)];

/** This Node.js, as one of another version. */
function load(file: string, version: string) {
  const script = `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "${version}" } });
    require(${JSON.stringify(path.join(ROOT, file))})`;
  return spawnSync(process.execPath, ["-e", script], { encoding: "utf8", cwd: ROOT });
}

describe("what is loaded from outside", () => {
  it.each(files.filter((file) => file.endsWith(".js")))("says which Node.js it needs: %s", (file) => {
    const { status, stderr } = load(file, "20.20.2");

    expect(status).toBe(1);
    expect(stderr).toContain("kindstack: Node.js 22.19 or later is needed; this is 20.20.2. Set PATH");
  });
});

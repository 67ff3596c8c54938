import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { parse } from "yaml";

const ROOT = path.resolve(__dirname, "../../..");
const { bin } = JSON.parse(readFileSync(path.join(ROOT, "package.json"), "utf8"));
const { main } = parse(readFileSync(path.join(ROOT, "Pulumi.yaml"), "utf8"));

/** In this Node.js, as one of another version. It prints, at its end, whether the library is loaded that fails in that one. */
function load(file: string) {
  const script = `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.20.2" } });
    const isLoaded = () => Object.keys(require.cache).some((name) => name.includes("/vendor/undici"));
    process.on("exit", () => console.log(isLoaded()));
    require(${JSON.stringify(path.join(ROOT, file))})`;
  return spawnSync(process.execPath, ["-e", script], { encoding: "utf8", cwd: ROOT });
}

it.each([bin.kindstack, main])("%s says which Node.js it needs before it loads libraries", (file) => {
  const { status, stderr, stdout } = load(file);

  expect({ status, stdout }).toEqual({ status: 1, stdout: "false\n" });
  expect(stderr).toContain("Node.js 22.19 or later is needed; this is 20.20.2. Set PATH");
});

import fs from "node:fs";
import path from "node:path";
import { execa } from "execa";
import { beforeAll, expect, it } from "vitest";
import { useDirectory } from "./directories";

/* The example package, with Kindstack as it is packed: in a folder that knows nothing of this one. */

const ROOT = path.resolve(__dirname, "..");
const home = useDirectory();
const project = path.join(home, "examples");
const npm = (...words: string[]) =>
  execa("npm", words, { cwd: project, preferLocal: true, localDir: ROOT, reject: false, all: true });

beforeAll(async () => {
  const ofRepository = (file: string) => !/node_modules|dist|\.kindstack/.test(path.relative(ROOT, file));
  fs.cpSync(path.join(ROOT, "examples"), project, { recursive: true, filter: ofRepository });
  const packed = await npm("pack", ROOT, "--ignore-scripts", "--silent", "--pack-destination", home);
  const archive = path.join(home, packed.stdout.trim());
  const installed = await npm("install", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund", archive);
  expect(installed.exitCode, installed.all).toBe(0);
}, 600_000); // it installs 470 packages

it.each(["check", "build", "test"])("passes npm run %s", { timeout: 600_000 }, async (script) => {
  const { exitCode, all } = await npm("run", script);
  expect(exitCode, all).toBe(0);
});

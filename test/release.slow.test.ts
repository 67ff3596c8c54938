import fs from "node:fs";
import path from "node:path";
import { execa } from "execa";
import { beforeAll, expect, it } from "vitest";
import { packageVersion } from "../src/package";
import { useDirectory } from "./directories";

/* The release's dry run, for this platform, and what it made, installed where there is neither Go nor a tool of ours. */

const ROOT = path.resolve(__dirname, "..");
const PLATFORM = `${process.platform}-${process.arch}`;
const home = useDirectory();
const made = path.join(home, "made");
const archive = (name: string) => path.join(made, `${name}-${packageVersion}.tgz`);
const release = (...words: string[]) =>
  execa(process.execPath, ["tools/release.mjs", ...words], { cwd: ROOT, reject: false });
let report: string;

beforeAll(async () => {
  const { stderr, exitCode } = await release(made, "--platforms", PLATFORM);
  expect(stderr).not.toContain("release:");
  expect(exitCode).toBe(0);
  report = stderr;
});

it("makes the packages and the chart, with their checksums, and publishes nothing", async () => {
  const names = ["kindstack", "kindstack-chart", `kindstack-engine-${PLATFORM}`];
  expect(fs.readdirSync(made).sort()).toEqual(
    ["SHA256SUMS", ...names.map((name) => `${name}-${packageVersion}.tgz`)].sort(),
  );
  const { exitCode } = await execa("sha256sum", ["--check", "--strict", "SHA256SUMS"], { cwd: made });
  expect(exitCode).toBe(0);
  expect(report).toContain("kindstack: would be published");
});

it("puts the compiled code, its types and what the first start builds into the package, and nothing else", async () => {
  const { stdout } = await execa("tar", ["-tzf", archive("kindstack")]);
  const files = stdout.split("\n").map((file) => file.replace(/^package\//, ""));
  expect(files).toEqual(expect.arrayContaining(["dist/src/cli/main.js", "dist/stacks/contract/index.d.ts"]));
  expect(files.filter((file) => /\.map$|_test\.go$|^(src|test|bench|dist\/bench)\//.test(file))).toEqual([]);
  // Types are for what package.json exports: of the command line there are none.
  expect(files.filter((file) => /^dist\/src\/(cli|controller|operator)\/.*\.d\.ts$/.test(file))).toEqual([]);
});

it("is installed with its engine, which needs neither Go nor a download", async () => {
  const project = path.join(home, "project");
  fs.mkdirSync(project);
  fs.writeFileSync(path.join(project, "package.json"), "{}");
  const packages = [archive("kindstack"), archive(`kindstack-engine-${PLATFORM}`)];
  await execa("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", ...packages], { cwd: project });
  const env = {
    PATH: path.dirname(process.execPath),
    HOME: home,
    KINDSTACK_CACHE_DIR: path.join(home, "cache"),
    KINDSTACK_WORK_DIR: path.join(home, "work"),
    PULUMI_BACKEND_URL: `file://${home}`,
    PULUMI_CONFIG_PASSPHRASE: "of this test",
  };
  const kindstack = (...words: string[]) =>
    execa(path.join(project, "node_modules/.bin/kindstack"), words, {
      env,
      extendEnv: false,
      reject: false,
      all: true,
    });

  expect((await kindstack("--version")).stdout).toBe(packageVersion);
  expect((await kindstack("history", "podset", "none", "-n", "default")).all).toContain("has no stack");
  expect(fs.existsSync(env.KINDSTACK_CACHE_DIR)).toBe(false);
});

it("refuses a tag of another version, and a platform that there is none for", async () => {
  expect(await release(path.join(home, "other"), "--tag", "v9.9.9")).toMatchObject({
    exitCode: 1,
    stderr: `release: the tag is v9.9.9, but package.json says ${packageVersion}`,
  });
  expect((await release(path.join(home, "other"), "--platforms", "win32-x64")).stderr).toContain(
    "--platforms: win32-x64 is none of linux-x64, linux-arm64, darwin-x64, darwin-arm64",
  );
});

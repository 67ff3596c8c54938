import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { beforeEach, expect, it } from "vitest";
import { runCommand } from "../../src/cli/program";
import { namesOf } from "../../src/scaffold/names";
import { folderFiles } from "../../src/scaffold/templates";
import { testDirectory } from "../directories";

/* What `kindstack new` writes, as the compiler and its own tests see it. */

const ROOT = path.resolve(__dirname, "../..");

let directory: string;
beforeEach(() => {
  directory = testDirectory();
});

/** Compiles what is in the directory, without writing anything. */
function compile(config: object): void {
  fs.writeFileSync(path.join(directory, "tsconfig.json"), JSON.stringify(config));
  const compiler = path.join(ROOT, "node_modules/typescript-7/bin/tsc");
  execFileSync(process.execPath, [compiler, "-p", directory, "--noEmit", "--incremental", "false"], { stdio: "pipe" });
}

it("a kind's folder in this repository compiles", () => {
  for (const [file, text] of Object.entries(folderFiles(namesOf("BackupPolicy", "example.com")))) {
    fs.mkdirSync(path.dirname(path.join(directory, file)), { recursive: true });
    fs.writeFileSync(path.join(directory, file), text);
  }
  fs.symlinkSync(path.join(ROOT, "node_modules"), path.join(directory, "node_modules"));
  // What is imported from beside the folder is found in what was built: to check the repository again takes 10 s.
  compile({
    extends: path.join(ROOT, "tsconfig.json"),
    compilerOptions: { rootDirs: [directory, path.join(ROOT, "dist")] },
    include: ["stacks", "test"],
  });
});

it("the public modules load where CommonJS cannot load ES modules, as in Jest", () => {
  const { exports } = JSON.parse(fs.readFileSync(path.join(ROOT, "package.json"), "utf8")) as { exports: object };
  const specifiers = Object.keys(exports).map((name) => path.posix.join("kindstack", name));
  expect(specifiers).toContain("kindstack/testing");
  const load = `for (const specifier of ${JSON.stringify(specifiers)}) require(specifier)`;
  execFileSync(process.execPath, ["--no-experimental-require-module", "-e", load], { cwd: ROOT, stdio: "pipe" });
});

it("a provider compiles, and its tests pass", async () => {
  fs.writeFileSync(path.join(directory, "package.json"), '{ "name": "@acme/kinds" }');
  expect(await runCommand(["new", "provider", "BackupTarget", "--dir", directory])).toBe(0);

  fs.mkdirSync(path.join(directory, "node_modules"));
  for (const name of ["@pulumi", "@types", "vitest", "kindstack"]) {
    const target = name === "kindstack" ? ROOT : path.join(ROOT, "node_modules", name);
    fs.symlinkSync(target, path.join(directory, "node_modules", name));
  }
  fs.writeFileSync(path.join(directory, "vitest.config.mts"), "export default {};");
  execFileSync(path.join(ROOT, "node_modules/.bin/vitest"), ["run"], { cwd: directory, stdio: "pipe" });
  compile({ extends: path.join(ROOT, "tsconfig.json"), include: ["src", "test"] });
});

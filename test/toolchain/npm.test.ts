import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { npmPackage } from "../../src/toolchain/tools";
import { testDirectory } from "../directories";

let root: string;
let integrity: string;

/** A registry's archive of a package, and an npm that delivers it. */
beforeEach(() => {
  root = testDirectory();
  const file = (name: string, text: string, mode = 0o644) => {
    fs.mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
    fs.writeFileSync(path.join(root, name), text, { mode });
  };
  file("package/native/bin/hammer", "#!/bin/sh\n", 0o755);
  file("package/link.js", 'require("node:fs").symlinkSync("hammer", "native/bin/mallet")');
  execFileSync("tar", ["-czf", "archive.tgz", "package"], { cwd: root });
  const digest = createHash("sha512").update(fs.readFileSync(path.join(root, "archive.tgz")));
  integrity = `sha512-${digest.digest("base64")}`;
  file("bin/npm", `#!/bin/sh\necho "$@" > ${root}/asked\ncp ${root}/archive.tgz .\n`, 0o755);
  vi.stubEnv("PATH", `${path.join(root, "bin")}:${process.env.PATH}`);
});

afterEach(() => void vi.unstubAllEnvs());

async function make(expected: string | undefined): Promise<string> {
  const [home, scratch] = [path.join(root, "home"), path.join(root, "scratch")];
  for (const folder of [home, scratch]) fs.mkdirSync(folder);
  const hammer = { name: "@acme/hammer", version: "1.2.3", folder: "native", script: "link.js" };
  const source = npmPackage({ ...hammer, integrity: expected, estimatedSeconds: 1 });
  await source.make({ file: path.join(home, "bin/hammer"), home, scratch, signal: new AbortController().signal });
  return home;
}

it("unpacks a folder of a package, after its own script has run", async () => {
  const home = await make(integrity);

  expect(fs.readdirSync(path.join(home, "bin")).sort()).toEqual(["hammer", "mallet"]);
  expect(fs.readFileSync(path.join(root, "asked"), "utf8")).toContain("pack @acme/hammer@1.2.3 --ignore-scripts");
});

it("runs and keeps nothing of an archive with another checksum", async () => {
  await expect(make(integrity.replace(/.{8}$/, "AAAAAA=="))).rejects.toThrow(
    /^the checksum of @acme\/hammer@1.2.3 is sha512-/,
  );

  expect(fs.existsSync(path.join(root, "scratch/package"))).toBe(false);
  expect(fs.readdirSync(path.join(root, "home"))).toEqual([]);
});

it("says that a platform has no package", async () => {
  await expect(make(undefined)).rejects.toThrow("there is no package @acme/hammer");
});

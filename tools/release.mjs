// Makes the archives of a release in a folder: the npm packages, the engine's for each platform among them, and the chart,
// with their checksums. `--publish` then publishes the packages; what a registry has already is left as it is, so that a
// release that was interrupted can be run again.
//
//   node tools/release.mjs <folder> [--platforms linux-x64,darwin-arm64] [--image <repository>] [--tag v0.1.0] [--publish]
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

/** Node.js' names of what the engine is built for, and Go's. */
const PLATFORMS = {
  "linux-x64": { GOOS: "linux", GOARCH: "amd64" },
  "linux-arm64": { GOOS: "linux", GOARCH: "arm64" },
  "darwin-x64": { GOOS: "darwin", GOARCH: "amd64" },
  "darwin-arm64": { GOOS: "darwin", GOARCH: "arm64" },
};
/** What the package's own scripts need, and its users do not. */
const OF_THE_CLONE = ["devDependencies", "scripts", "overrides", "allowScripts"];

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const require = createRequire(import.meta.url);
const manifest = JSON.parse(fs.readFileSync(path.join(root, "package.json"), "utf8"));
const { version } = manifest;

const { folder, platforms, image, tag, publish } = parameters();
checkVersion();
fs.mkdirSync(folder, { recursive: true });
if (fs.readdirSync(folder).length > 0) fail(`${folder} is not empty`);
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), "kindstack-release-"));
try {
  const engines = [];
  for (const platform of platforms) engines.push(await packEngine(platform));
  const archives = [...engines, packKindstack(), packChart()];
  const sums = archives.map((file) => `${sha256(path.join(folder, file))}  ${file}\n`);
  fs.writeFileSync(path.join(folder, "SHA256SUMS"), sums.join(""));
  process.stdout.write(sums.join(""));
  for (const file of [...engines, archives.at(-2)]) publishPackage(file); // the engines first: the package needs them
} finally {
  fs.rmSync(scratch, { recursive: true, force: true });
}

function parameters() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      platforms: { type: "string", default: Object.keys(PLATFORMS).join(",") },
      image: { type: "string", default: "registry.example.com/kindstack" },
      tag: { type: "string" },
      publish: { type: "boolean", default: false },
    },
  });
  const [folder, ...others] = positionals;
  if (folder === undefined || others.length > 0) fail("usage: node tools/release.mjs <folder> [options]");
  const platforms = values.platforms.split(",");
  const unknown = platforms.find((platform) => !(platform in PLATFORMS));
  if (unknown !== undefined) fail(`--platforms: ${unknown} is none of ${Object.keys(PLATFORMS).join(", ")}`);
  if (values.publish && platforms.length < Object.keys(PLATFORMS).length) fail("--publish needs all platforms");
  return { ...values, folder: path.resolve(folder), platforms };
}

/** package.json has the version. What repeats it for readers, and the tag, must agree. */
function checkVersion() {
  if (tag !== undefined && tag !== `v${version}`) fail(`the tag is ${tag}, but package.json says ${version}`);
  const changelog = fs.readFileSync(path.join(root, "CHANGELOG.md"), "utf8");
  if (publish && !changelog.includes(`\n## ${version} `)) fail(`CHANGELOG.md has no section "## ${version} (<date>)"`);
}

/** @returns the archive's name, in the folder */
async function packEngine(platform) {
  const { resolveBinary } = require(path.join(root, "dist/src/toolchain/resolve.js"));
  const { tools } = require(path.join(root, "dist/src/toolchain/tools.js"));
  const home = path.join(scratch, platform);
  fs.mkdirSync(home);
  const file = path.join(home, tools.engine.file);
  if (platform === `${process.platform}-${process.arch}`) {
    fs.copyFileSync(await resolveBinary({ ...tools.engine, package: undefined }), file);
  } else {
    Object.assign(process.env, PLATFORMS[platform]);
    const sources = fs.mkdtempSync(path.join(scratch, "sources-"));
    const [build] = tools.engine.sources;
    await build.make({ file, home, scratch: sources, signal: new AbortController().signal });
    delete process.env.GOOS;
    delete process.env.GOARCH;
  }
  fs.chmodSync(file, 0o755);
  fs.copyFileSync(path.join(root, "LICENSE"), path.join(home, "LICENSE"));
  const [os, cpu] = platform.split("-");
  const { license, repository } = manifest;
  writeManifest(home, {
    name: engineOf(platform),
    version,
    description: `The engine of Kindstack for ${platform}: kindstack depends on it`,
    license,
    repository,
    os: [os],
    cpu: [cpu],
    files: [tools.engine.file],
  });
  return pack(home);
}

function engineOf(platform) {
  return `kindstack-engine-${platform}`;
}

/** The clone's package, with the engines as optional dependencies: a registry has them from their publication on only. */
function packKindstack() {
  const archive = path.join(
    scratch,
    npm(["pack", "--ignore-scripts", "--silent", "--pack-destination", scratch], root),
  );
  execFileSync("tar", ["-xzf", archive, "-C", scratch]);
  const unpacked = path.join(scratch, "package");
  const published = Object.entries(manifest).filter(([key]) => !OF_THE_CLONE.includes(key));
  const optionalDependencies = Object.fromEntries(
    Object.keys(PLATFORMS).map((platform) => [engineOf(platform), version]),
  );
  writeManifest(unpacked, { ...Object.fromEntries(published), optionalDependencies });
  return pack(unpacked);
}

function packChart() {
  const chart = path.join(scratch, "kindstack");
  const command = path.join(root, "dist/src/cli/main.js");
  execFileSync(process.execPath, [
    ...[command, "install", "--chart", chart, "--set", `image=${image}:${version}`],
    // Until the chart's user names tables, objects may write none.
    ...["--set", "backendFromSecret=true", "--set", "postgresTables="],
  ]);
  const archive = `kindstack-chart-${version}.tgz`;
  execFileSync("tar", ["-czf", path.join(folder, archive), "-C", scratch, "kindstack"]);
  return archive;
}

function publishPackage(file) {
  const name = file.slice(0, -`-${version}.tgz`.length);
  if (!publish) {
    npm(["publish", "--dry-run", "--silent", path.join(folder, file)], root);
    console.error(`${name}: would be published`);
  } else if (isPublished(name)) {
    console.error(`${name}: ${version} is published already`);
  } else {
    npm(["publish", "--provenance", "--access", "public", path.join(folder, file)], root);
    console.error(`${name}: published`);
  }
}

function isPublished(name) {
  try {
    return npm(["view", `${name}@${version}`, "version"], root) === version;
  } catch (error) {
    if (String(error.stderr).includes("E404")) return false;
    throw error;
  }
}

function pack(home) {
  return npm(["pack", "--silent", "--pack-destination", folder], home);
}

function npm(words, cwd) {
  return execFileSync("npm", words, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }).trim();
}

function writeManifest(home, content) {
  fs.writeFileSync(path.join(home, "package.json"), `${JSON.stringify(content, null, 2)}\n`);
}

function sha256(file) {
  return createHash("sha256").update(fs.readFileSync(file)).digest("hex");
}

function fail(message) {
  console.error(`release: ${message}`);
  process.exit(1);
}

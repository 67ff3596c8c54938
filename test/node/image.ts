import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { execa } from "execa";
import { filesUnder } from "../files";
import { type StepTime, timed } from "./times";

const ROOT = path.resolve(__dirname, "../..");
/** The stage of the Dockerfile whose steps are run here; the last one only copies what it has collected. */
const STAGE = "build";
const CLI = "dist/src/cli/main.js";
const TIMES = "times.json";
/** Longer than any use of what was built. */
const KEPT_MS = 3 * 3_600_000;

/** A layer, as a folder whose files belong to root, and the image's configuration. */
export interface ImageSource {
  directory: string;
  config: object;
}

/** What an image consists of, and the digests of that. */
export interface ImageParts {
  config: string;
  configDigest: string;
  /** A file. */
  layer: string;
  layerDigest: string;
}

interface Instruction {
  name: string;
  words: string;
}

/** What was built. */
export interface BuiltImage {
  /** As `docker save` writes it. */
  archive: string;
  /** The image's root directory. */
  root: string;
  /** The command line in the folder where the image was compiled, with all of its packages. */
  cli: string;
  config: { Env: string[]; User: string; Entrypoint: string[]; Cmd: string[] };
  /** How long its steps took, when they were run. */
  times: StepTime[];
}

/**
 * Builds the operator's image by the Dockerfile's own steps, on this machine in place of a container: Go and the
 * packages of npm are those that are pinned, the C library is the machine's.
 *
 * @param home what is built lies there, in a folder named after the sources; what has not been used for hours is removed
 */
export async function buildImage(home: string, reference: string): Promise<BuiltImage> {
  const instructions = readDockerfile();
  const steps = stageOf(instructions, STAGE);
  const directory = path.join(home, digestOf(steps));
  const last = instructions.slice(instructions.findLastIndex(({ name }) => name === "FROM"));
  const [, copied = ""] = /^--from=build (\S+) \/$/.exec(last.find(({ name }) => name === "COPY")?.words ?? "") ?? [];
  const [archive, root, config] = [path.join(directory, "image.tar"), within(directory, copied), configurationOf(last)];
  const workdir = steps.find(({ name }) => name === "WORKDIR")?.words ?? "";
  const cli = path.join(within(directory, workdir), CLI);
  const built = () => ({ archive, root, cli, config, times: timesIn(directory) });
  if (fs.existsSync(directory)) {
    used(directory);
    return built();
  }

  // As Docker would, the packages are taken from an earlier build of the same ones.
  const installing = steps.findIndex(({ name }) => name === "RUN") + 1;
  const packages = path.join(home, `packages-${digestOf(steps.slice(0, installing))}`);
  removeUnused(home);
  await made(packages, (folder) => runSteps(steps.slice(0, installing), folder));
  await made(directory, async (folder) => {
    await execa("cp", ["--archive", "--link", `${packages}/.`, folder]);
    await runSteps(steps, folder, installing);
    const source = { reference, directory: within(folder, copied), config };
    await step(folder, "write the image", () => writeImage(source, path.join(folder, path.basename(archive))));
  });
  return built();
}

function timesIn(folder: string): StepTime[] {
  const file = path.join(folder, TIMES);
  return fs.existsSync(file) ? (JSON.parse(fs.readFileSync(file, "utf8")) as StepTime[]) : [];
}

async function step(folder: string, name: string, work: () => Promise<unknown>): Promise<void> {
  const times = timesIn(folder);
  await timed(times, name, work);
  const file = path.join(folder, TIMES);
  fs.rmSync(file, { force: true }); // another build may have the same file, by a hard link
  fs.writeFileSync(file, JSON.stringify(times));
}

/** Makes a folder whole or not at all, and once: two clones may build at the same time. */
async function made(folder: string, make: (folder: string) => Promise<void>): Promise<void> {
  if (fs.existsSync(folder)) return used(folder);
  fs.mkdirSync(path.dirname(folder), { recursive: true });
  const aside = fs.mkdtempSync(`${folder}-`);
  await make(aside);
  try {
    fs.renameSync(aside, folder);
  } catch (error) {
    if (!fs.existsSync(folder)) throw error;
    fs.rmSync(aside, { recursive: true }); // another build was faster
  }
  used(folder);
}

function used(folder: string): void {
  fs.utimesSync(folder, new Date(), new Date());
}

/** Each takes half a gigabyte. One that is younger may be in use, or be made. */
function removeUnused(home: string): void {
  for (const entry of fs.existsSync(home) ? fs.readdirSync(home) : []) {
    const folder = path.join(home, entry);
    if (Date.now() - fs.statSync(folder).mtimeMs > KEPT_MS) fs.rmSync(folder, { recursive: true, force: true });
  }
}

/** Writes an image of one layer in the form of `docker save`. */
async function writeImage({ reference, ...source }: ImageSource & { reference: string }, archive: string) {
  const aside = fs.mkdtempSync(`${archive}-`);
  const { config } = await writeParts(source, aside);
  fs.writeFileSync(path.join(aside, "config.json"), config);
  fs.writeFileSync(
    path.join(aside, "manifest.json"),
    JSON.stringify([{ Config: "config.json", RepoTags: [reference], Layers: ["layer.tar"] }]),
  );
  const files = ["manifest.json", "config.json", "layer.tar"];
  await execa("tar", ["--create", `--file=${archive}.new`, "--directory", aside, ...files]);
  fs.rmSync(aside, { recursive: true });
  fs.renameSync(`${archive}.new`, archive);
}

/** Writes an image's only layer into a folder. */
export async function writeParts({ directory, config }: ImageSource, folder: string): Promise<ImageParts> {
  const layer = path.join(folder, "layer.tar");
  const owner = ["--numeric-owner", "--owner=0", "--group=0"];
  await execa("tar", ["--create", ...owner, `--file=${layer}`, "--directory", directory, "."]);
  const layerDigest = `sha256:${(await execa("sha256sum", [layer])).stdout.split(" ")[0]}`;
  const text = JSON.stringify({
    architecture: process.arch === "x64" ? "amd64" : process.arch,
    os: "linux",
    config,
    rootfs: { type: "layers", diff_ids: [layerDigest] },
  });
  const configDigest = `sha256:${createHash("sha256").update(text).digest("hex")}`;
  return { config: text, configDigest, layer, layerDigest };
}

/** What the Dockerfile copies from the clone. @throws Error for what .dockerignore keeps from Docker */
export function sourcesOfImage(): string[] {
  return copiedFiles(stageOf(readDockerfile(), STAGE)).map(({ file }) => file);
}

function readDockerfile(): Instruction[] {
  const lines = fs
    .readFileSync(path.join(ROOT, "Dockerfile"), "utf8")
    .replaceAll(/^#.*\n/gm, "")
    .replaceAll("\\\n", " ")
    .split("\n");
  return lines.flatMap((line) => {
    const [, name, words] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
    return name === undefined || words === undefined ? [] : [{ name, words }];
  });
}

function stageOf(instructions: Instruction[], stage: string): Instruction[] {
  const first = instructions.findIndex(({ name, words }) => name === "FROM" && words.endsWith(` AS ${stage}`));
  if (first === -1) throw new Error(`the Dockerfile has no stage ${stage}`);
  const rest = instructions.slice(first + 1);
  return rest.slice(
    0,
    rest.findIndex(({ name }) => name === "FROM"),
  );
}

/** Of a COPY from the clone. */
function copiedPaths(words: string): { sources: string[]; target: string } {
  const all = words.split(/\s+/);
  return { sources: all.slice(0, -1), target: all.at(-1) ?? "" };
}

/** @throws Error for what .dockerignore keeps from Docker */
function copiedFiles(steps: Instruction[]): { file: string; target: string }[] {
  const kept = new Set(
    fs
      .readFileSync(path.join(ROOT, ".dockerignore"), "utf8")
      .split("\n")
      .flatMap((line) => (line.startsWith("!") ? line.slice(1) : [])),
  );
  return steps
    .filter(({ name, words }) => name === "COPY" && !words.startsWith("--from="))
    .flatMap(({ words }) => {
      const { sources, target } = copiedPaths(words);
      return sources.map((file) => {
        const parents = file.split("/").map((_, index, segments) => segments.slice(0, index + 1).join("/"));
        if (!parents.some((parent) => kept.has(parent)))
          throw new Error(`.dockerignore excludes ${file}, which the Dockerfile copies`);
        return { file, target };
      });
    });
}

/** @param done how many of them have been run in this folder before */
async function runSteps(steps: Instruction[], directory: string, done = 0): Promise<void> {
  let workdir = directory;
  for (const [index, { name, words }] of steps.entries()) {
    if (index < done && name !== "WORKDIR") continue;
    if (name === "WORKDIR") {
      workdir = within(directory, words);
      fs.mkdirSync(workdir, { recursive: true });
    } else if (name === "COPY" && words.startsWith("--from=node ")) {
      // The Node.js that runs this.
    } else if (name === "COPY") {
      const { sources, target } = copiedPaths(words);
      for (const source of sources) {
        const to = path.join(
          workdir,
          target,
          fs.statSync(path.join(ROOT, source)).isDirectory() ? "" : path.basename(source),
        );
        fs.cpSync(path.join(ROOT, source), to, { recursive: true });
      }
    } else if (name === "RUN") {
      const command = words.replaceAll(/--mount=\S+ /g, "");
      console.log(`image: ${command}`);
      const PATH = `${path.dirname(process.execPath)}:${process.env.PATH}`;
      const env = { PATH, npm_config_loglevel: "error" };
      const [stdout, stderr] = ["ignore", "inherit"] as const;
      await step(directory, command, () => execa("sh", ["-ec", command], { cwd: workdir, env, stdout, stderr }));
    } else {
      throw new Error(`the Dockerfile's stage ${STAGE} has ${name}, which test/node/image.ts does not know`);
    }
  }
}

/** The stage's root directory is a folder here. */
function within(directory: string, file: string): string {
  return path.join(directory, file);
}

function configurationOf(stage: Instruction[]) {
  const of = (name: string) => stage.filter((instruction) => instruction.name === name).map(({ words }) => words);
  return {
    Env: of("ENV").flatMap((words) => words.split(/\s+/)),
    User: of("USER")[0] ?? "",
    WorkingDir: of("WORKDIR")[0],
    Entrypoint: JSON.parse(of("ENTRYPOINT")[0] ?? "[]") as string[],
    Cmd: JSON.parse(of("CMD")[0] ?? "[]") as string[],
    ExposedPorts: Object.fromEntries(of("EXPOSE").map((port) => [`${port}/tcp`, {}])),
  };
}

/** Of these steps and of all that they copy, on this Node.js. */
function digestOf(steps: Instruction[]): string {
  const hash = createHash("sha256").update(process.version).update(JSON.stringify(steps));
  for (const { file: source } of copiedFiles(steps)) {
    const file = path.join(ROOT, source);
    for (const each of fs.statSync(file).isDirectory() ? filesUnder(file).sort() : [file]) {
      hash.update(`\0${path.relative(ROOT, each)}\0`).update(fs.readFileSync(each));
    }
  }
  return hash.digest("hex").slice(0, 16);
}

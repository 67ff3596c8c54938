import { constants, existsSync } from "node:fs";
import fs from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { execa } from "execa";
import lockfile from "proper-lockfile";
import { errorMessageOf } from "../../providers/errors";
import { packageRoot } from "../package";
import { GO_BUILD } from "./go";
import { type Source, type Tool, type ToolEvent, ToolUnavailableError, variableOf } from "./tool";
import { type ToolName, tools } from "./tools";

export interface ResolveOptions {
  signal?: AbortSignal;
  observe?: (event: ToolEvent) => void;
}

const VERSION_TIMEOUT_MS = 10_000;
const LOCK_STALE_MS = 20_000;
const LOCK_RETRY_MS = 500;

/**
 * Finds or makes a tool: by its environment variable, on PATH, in its npm package, in the cache, then from its sources in
 * order.
 * Made tools go to `<cache>/<tool>/<version>/`; processes that want the same tool at once make it once.
 *
 * @returns its file
 * @throws ToolUnavailableError with the reason of every source
 */
export async function resolveBinary(name: ToolName | Tool, options: ResolveOptions = {}): Promise<string> {
  const tool: Tool = typeof name === "string" ? tools[name] : name;
  const variable = variableOf(tool);
  const named = process.env[variable];
  if (named) return namedBinary(tool, variable, path.resolve(named));

  const reasons = [`${variable}: not set`];
  const found = (await searchPath(tool, reasons)) ?? (await searchPackage(tool, reasons));
  if (found !== undefined) return found;

  const home = path.join(cacheDirectory(), tool.name);
  const cached = cachedFile(tool, home);
  // A file in the cache was complete and had told its version before it was renamed into place.
  if (existsSync(cached)) return cached;
  reasons.push(`cache: no ${cached}`);

  return makeUnderLock(tool, home, reasons, options);
}

/** Where tools are kept that were downloaded or built: `KINDSTACK_CACHE_DIR`, or `kindstack` in the user's cache. */
export function cacheDirectory(): string {
  const { KINDSTACK_CACHE_DIR, XDG_CACHE_HOME } = process.env;
  return path.resolve(
    KINDSTACK_CACHE_DIR || path.join(XDG_CACHE_HOME || path.join(os.homedir(), ".cache"), "kindstack"),
  );
}

/** Several tools, one after the other: a build uses all cores by itself. */
export async function resolveBinaries<Name extends ToolName>(
  names: readonly Name[],
  options: ResolveOptions = {},
): Promise<Record<Name, string>> {
  const paths: Partial<Record<Name, string>> = {};
  for (const name of names) paths[name] = await resolveBinary(name, options);
  return paths as Record<Name, string>;
}

async function namedBinary(tool: Tool, variable: string, file: string): Promise<string> {
  const version = await askVersion(tool, file).catch((error) => {
    throw new ToolUnavailableError(`${variable} names ${file}, which cannot be used: ${errorMessageOf(error)}`);
  });
  if (version === tool.version) return file;
  throw new ToolUnavailableError(
    `${variable} names ${file}, which is ${tool.name} ${version}; ${tool.version} is needed. ` +
      `Name another file or unset ${variable}.`,
  );
}

async function searchPath(tool: Tool, reasons: string[]): Promise<string | undefined> {
  if (tool.versionArguments === undefined) return undefined;
  const unsuitable: string[] = [];
  for (const directory of (process.env.PATH ?? "").split(path.delimiter).filter(Boolean)) {
    const file = path.join(directory, fileOf(tool));
    if (!(await isExecutable(file))) continue;
    const fault = await faultOf(tool, file);
    if (fault === undefined) return file;
    unsuitable.push(fault);
  }
  reasons.push(`PATH: ${unsuitable.join(", ") || `no ${fileOf(tool)}`}`);
  return undefined;
}

async function searchPackage(tool: Tool, reasons: string[]): Promise<string | undefined> {
  if (tool.package === undefined) return undefined;
  const file = fileInPackage(tool.package, fileOf(tool));
  const fault = file === undefined ? `no package ${tool.package}` : await faultOf(tool, file);
  if (fault === undefined) return file;
  reasons.push(`npm: ${fault}`);
  return undefined;
}

function fileInPackage(name: string, file: string): string | undefined {
  try {
    return path.join(path.dirname(require.resolve(`${name}/package.json`, { paths: [packageRoot] })), file);
  } catch {
    return undefined;
  }
}

/** Why a file cannot be used; `undefined` when it can. */
async function faultOf(tool: Tool, file: string): Promise<string | undefined> {
  try {
    const version = await askVersion(tool, file);
    return version === tool.version ? undefined : `${file} is ${version}`;
  } catch (error) {
    return `${file}: ${errorMessageOf(error)}`;
  }
}

function fileOf({ name, file = name }: Tool): string {
  return file;
}

function cachedFile(tool: Tool, home: string): string {
  return path.join(home, tool.version, fileOf(tool));
}

/** @param reasons gets the reason of each source that fails */
async function makeUnderLock(tool: Tool, home: string, reasons: string[], options: ResolveOptions): Promise<string> {
  const { observe = () => {} } = options;
  return underLock(tool, home, options, async (signal) => {
    const cached = cachedFile(tool, home);
    if (existsSync(cached)) return cached; // the former holder of the lock has made it
    await removeLeftovers(home);
    for (const source of tool.sources) {
      observe({ type: "making", tool, source });
      try {
        await make(tool, source, home, signal);
        observe({ type: "made", tool, source });
        return cached;
      } catch (error) {
        signal.throwIfAborted();
        const reason = errorMessageOf(error);
        reasons.push(`${source.label}: ${reason}`);
        observe({ type: "failed", tool, source, reason });
      }
    }
    throw unavailable(tool, reasons);
  });
}

/** @param work gets a signal that is aborted when the lock is lost as well */
async function underLock<T>(
  tool: Tool,
  home: string,
  { signal: given, observe }: ResolveOptions,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const lost = new AbortController();
  const signal = given ? AbortSignal.any([given, lost.signal]) : lost.signal;
  const settings = {
    lockfilePath: path.join(home, ".lock"),
    stale: LOCK_STALE_MS,
    onCompromised: (error: Error) => lost.abort(error),
  };
  await fs.mkdir(home, { recursive: true });
  for (let waited = false; ; waited = true) {
    signal.throwIfAborted();
    try {
      const release = await lockfile.lock(home, settings);
      if (waited) observe?.({ type: "waited", tool });
      return await work(signal).finally(() => (lost.signal.aborted ? undefined : release()));
    } catch (error) {
      if ((error as { code?: string }).code !== "ELOCKED") throw error;
      if (!waited) observe?.({ type: "waiting", tool });
      await delay(LOCK_RETRY_MS);
    }
  }
}

function unavailable(tool: Tool, reasons: string[]): ToolUnavailableError {
  const isBuilt = tool.sources.some(({ label }) => label === GO_BUILD);
  const { remedy = isBuilt ? "Install Go 1.26 or later, so that it can be built" : undefined } = tool;
  return new ToolUnavailableError(
    `${tool.name} ${tool.version} could not be found or made:\n` +
      `${reasons.map((reason) => `  - ${reason.replaceAll("\n", "\n    ")}`).join("\n")}\n` +
      `${remedy === undefined ? "Set" : `${remedy}, or set`} ${variableOf(tool)} to a file of this version.`,
  );
}

/** Makes the tool in a temporary folder and renames it into place: the cache never holds half a tool. */
async function make(tool: Tool, source: Source, home: string, signal: AbortSignal): Promise<void> {
  const aside = await fs.mkdtemp(path.join(home, LEFTOVER_PREFIX));
  try {
    const [directory, scratch] = [path.join(aside, "made"), path.join(aside, "scratch")];
    await fs.mkdir(directory);
    await fs.mkdir(scratch);
    const file = path.join(directory, fileOf(tool));
    await source.make({ file, home: directory, scratch, signal });
    signal.throwIfAborted();
    const version = await askVersion(tool, file);
    if (version !== tool.version) throw new Error(`it is ${version}, not ${tool.version}`);
    const complete = path.join(home, tool.version);
    await fs.rm(complete, { recursive: true, force: true }); // what is left of a tool whose file was deleted
    await fs.rename(directory, complete);
  } finally {
    await fs.rm(aside, { recursive: true, force: true });
  }
}

const LEFTOVER_PREFIX = ".making-";

/** Removes what interrupted processes left; the caller holds the lock, so it is not in use. */
async function removeLeftovers(home: string): Promise<void> {
  for (const entry of await fs.readdir(home)) {
    if (entry.startsWith(LEFTOVER_PREFIX)) await fs.rm(path.join(home, entry), { recursive: true, force: true });
  }
}

/** The version that a file prints; the tool's version for an existing file of a tool without version arguments. */
async function askVersion(tool: Tool, file: string): Promise<string> {
  if (!existsSync(file)) throw new Error("the file does not exist");
  if (tool.versionArguments === undefined) return tool.version;
  const { all } = await execa(file, tool.versionArguments, {
    all: true,
    stdin: "ignore",
    timeout: VERSION_TIMEOUT_MS,
    env: { PULUMI_SKIP_UPDATE_CHECK: "true" },
  });
  const version = /\bv?(\d+\.\d+\.\d+(?:-[0-9A-Za-z.]+)?)/.exec(all)?.[1];
  if (version === undefined) throw new Error(`it prints no version: ${all.slice(0, 200)}`);
  return version;
}

function isExecutable(file: string): Promise<boolean> {
  return fs.access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
}

import { cp, mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { execa } from "execa";
import { DynamicResource } from "../providers/dynamic";
import { ProviderHost } from "../providers/host/session";
import type { DynamicProvider } from "../providers/provider";
import type { UpResult } from "../src/automation/engine";
import { GoEngine } from "../src/automation/go-engine";
import type { EngineUsage } from "../src/automation/rpc";
import { openEngine } from "../src/automation/workspace";
import { packageRoot } from "../src/package";
import type { BenchContext } from "./cluster";
import { treeCpuSeconds } from "./processes";
import { atMost, beside, type Figure, type Section, seconds } from "./results";
import { forEachAtOnce } from "./writers";

const FULL = { stacks: 400, others: 20_000, soak: 10_000 };
const QUICK = { stacks: 20, others: 100, soak: 100 };
const AT_ONCE = 8;
const STUB = "bench";

interface Value {
  value: string;
}

/** A provider that only remembers: what is measured is all the rest. */
const memory: DynamicProvider<Value, Value> = {
  check: async (_olds, news) => ({ inputs: news, failures: [] }),
  diff: async (_id, olds, news) => ({ changes: olds.value !== news.value }),
  create: async (inputs) => ({ id: "one", outs: inputs }),
  read: async (id, outs) => ({ id, props: outs }),
  update: async (_id, _olds, news) => ({ outs: news }),
  delete: async () => {},
  release: async () => {},
};

class Memory extends DynamicResource {
  constructor(name: string, value: string) {
    super({ module: "bench", name: "Memory", stub: STUB }, name, { value });
  }
}

/** The engine alone: with state in files, and providers that do nothing. */
export async function engine(context: BenchContext): Promise<Section> {
  const { stacks, others, soak } = context.quick ? QUICK : FULL;
  const folder = await mkdtemp(path.join(os.tmpdir(), "kindstack-bench-engine-"));
  try {
    const figures = [
      ...(await updates(context, path.join(folder, "alone"), stacks)),
      ...(await besideOthers(context, folder, stacks, others)),
      ...(await withoutRest(context, path.join(folder, "soak"), soak)),
      ...(await build(context, folder)),
    ];
    const notes = [
      `${stacks} stacks of one resource, ${AT_ONCE} at a time; CPU time of the engine and of the process that asks it.`,
      "Without rest: updates of 200 stacks, with no moment between them; memory and descriptors of all the engine's processes, at most.",
      "The build: what the first start does on a machine with Go and the modules, with an empty build cache.",
    ];
    return { id: "engine", title: "The engine alone", notes, figures };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function open({ engine: file }: BenchContext, folder: string): Promise<GoEngine> {
  const processes = await openEngine({
    file,
    workDirectory: path.join(folder, "work"),
    backendUrl: `file://${path.join(folder, "state")}`,
    protection: { passphrase: { value: "bench" }, keyService: undefined },
    environment: process.env,
    log: console,
  });
  return new GoEngine({ processes, host: new ProviderHost(new Map([[STUB, memory]])), timeoutMs: 60_000 });
}

/** CPU time of this process and the engine's, in ms, for each of some operations. */
async function cpuEach(names: readonly string[], run: (name: string) => Promise<UpResult>): Promise<number> {
  const before = await treeCpuSeconds(process.pid);
  await forEachAtOnce(
    names,
    async (name) => {
      const { failures } = await run(name);
      if (failures.length > 0) throw new Error(failures[0]?.message);
    },
    AT_ONCE,
  );
  return (((await treeCpuSeconds(process.pid)) - before) * 1000) / names.length;
}

const options = { savesOnce: true };
const declare =
  (value: string, resources = 1) =>
  () => {
    for (let index = 0; index < resources; index++) new Memory(`memory-${index}`, value);
  };

async function updates(context: BenchContext, folder: string, count: number): Promise<Figure[]> {
  const stacks = await open(context, folder);
  const names = Array.from({ length: count }, (_, index) => `stack-${index}`);
  try {
    await stacks.up("warm", declare("1"), options);
    context.detail("updates");
    const figures: Figure[] = [];
    const add = async (what: string, run: (name: string) => Promise<UpResult>, limit?: number) => {
      const value = await cpuEach(names, run);
      figures.push({
        what: `CPU time: ${what}`,
        value,
        unit: "ms",
        ...(limit !== undefined && { mark: atMost(limit) }),
      });
    };
    await add("created", (name) => stacks.up(name, declare("1"), options), 6);
    await add("changed", (name) => stacks.up(name, declare("2"), options), 6);
    await add("nothing to do", (name) => stacks.up(name, declare("2"), options), 6);
    await add("refreshed and updated", (name) => stacks.up(name, declare("2"), { ...options, refresh: true }));
    await add("eight more resources", (name) => stacks.up(name, declare("2", 9), options));
    await add("destroyed", (name) => stacks.destroy(name, options), 6);
    return figures;
  } finally {
    await stacks.close();
  }
}

/** One update at a time beside many other stacks, against the same beside none, in turns. */
async function besideOthers(context: BenchContext, folder: string, count: number, others: number): Promise<Figure[]> {
  const [alone, crowded] = [path.join(folder, "few"), path.join(folder, "many")];
  const names = Array.from({ length: count / 4 }, (_, index) => `stack-${index}`);
  const engines = [await open(context, alone), await open(context, crowded)] as const;
  try {
    for (const one of engines) await cpuEach(names, (name) => one.up(name, declare("0"), options));
    context.detail(`${others} other stacks`);
    await copyStack(path.join(crowded, "state/.pulumi"), others);
    const ms: [number[], number[]] = [[], []];
    for (let turn = 1; turn <= 6; turn++) {
      for (const side of [0, 1] as const) {
        ms[side].push(await cpuEach(names, (name) => engines[side].up(name, declare(String(turn)), options)));
      }
    }
    const middle = (values: number[]) => values.toSorted((a, b) => a - b)[3] as number;
    return [
      {
        what: `CPU time: one update beside ${others} other stacks`,
        value: middle(ms[1]),
        unit: "ms",
        against: beside("beside none", { value: middle(ms[0]) }),
        mark: atMost(1.2, "ratio"),
      },
    ];
  } finally {
    await Promise.all(engines.map((one) => one.close()));
  }
}

/** Makes copies of a stack, with its history. */
async function copyStack(pulumi: string, count: number): Promise<void> {
  const [stacks, history] = [path.join(pulumi, "stacks/kindstack"), path.join(pulumi, "history/kindstack")];
  const checkpoint = await readFile(path.join(stacks, "stack-0.json"), "utf8");
  for (let index = 0; index < count; index++) {
    const name = `other-${index}`;
    await writeFile(path.join(stacks, `${name}.json`), checkpoint.replaceAll("stack-0", name));
    await mkdir(path.join(history, name), { recursive: true });
  }
}

async function withoutRest(context: BenchContext, folder: string, count: number): Promise<Figure[]> {
  const stacks = await open(context, folder);
  const most: EngineUsage = { memoryBytes: 0, descriptors: 0 };
  let done = 0;
  const sample = setInterval(async () => {
    const usage = await stacks.processes.usage();
    for (const key of Object.keys(most) as (keyof EngineUsage)[]) most[key] = Math.max(most[key], usage[key]);
    context.detail(`${done} of ${count} updates`);
  }, 200);
  try {
    const names = Array.from({ length: count }, (_, index) => `stack-${index % 200}`);
    const ms = await cpuEach(names, async (name) => {
      const result = await stacks.up(name, declare(String(done++)), options);
      return result;
    });
    return [
      { what: `CPU time: of ${count} updates without rest, each`, value: ms, unit: "ms" },
      { what: "memory of the engine", value: most.memoryBytes / 2 ** 20, unit: "MiB", mark: atMost(200) },
      { what: "descriptors of the engine", value: most.descriptors, unit: "count", mark: atMost(1_500) },
      { what: "processes that took over", value: stacks.processes.counts.successors, unit: "count" },
    ];
  } finally {
    clearInterval(sample);
    await stacks.close();
  }
}

async function build(context: BenchContext, folder: string): Promise<Figure[]> {
  const size = (await stat(context.engine)).size / 2 ** 20;
  const figures: Figure[] = [{ what: "size of the engine", value: size, unit: "MiB", mark: atMost(50) }];
  if (context.quick) return figures;
  context.detail("a build with an empty cache");
  const module = path.join(folder, "module");
  await cp(path.join(packageRoot, "tools/engine"), module, { recursive: true });
  const started = performance.now();
  const env = { GOCACHE: path.join(folder, "go-cache"), CGO_ENABLED: "0", GOTOOLCHAIN: "local", GOWORK: "off" };
  const flags = ["build", "-mod=mod", "-trimpath", "-ldflags", "-s -w", "-o", path.join(folder, "built"), "."];
  await execa("go", flags, { cwd: module, env, cancelSignal: context.signal });
  return [...figures, { what: "build of the engine", ...seconds(performance.now() - started), mark: atMost(120) }];
}

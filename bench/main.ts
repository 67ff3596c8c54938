import { setMaxListeners } from "node:events";
import fs from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { Argument, Command } from "commander";
import { errorMessageOf } from "../providers/errors";
import { Progress } from "../src/cli/progress";
import { untilInterrupted } from "../src/cli/until-interrupted";
import { packageVersion } from "../src/package";
import { resolveBinary } from "../src/toolchain/resolve";
import { tools } from "../src/toolchain/tools";
import { admission } from "./admission";
import { besideGo } from "./beside-go";
import { burst } from "./burst";
import type { BenchContext } from "./cluster";
import { engine } from "./engine";
import { fleet } from "./fleet";
import { goOperatorTool } from "./go-operator";
import { heap } from "./heap";
import { idle } from "./idle";
import { oneObject } from "./one-object";
import { outage } from "./outage";
import { ownStacks } from "./own-stacks";
import { packages } from "./packages";
import { writePages } from "./pages";
import { previews } from "./previews";
import { propose } from "./propose";
import { repair } from "./repair";
import { type Results, readResults, type Section, writeResults } from "./results";
import { size } from "./size";
import { renderResults } from "./tables";

/** In the order in which they run, with the seconds that they take on two cores. */
const BENCHES: Record<string, { run: (context: BenchContext) => Promise<Section>; seconds: number }> = {
  engine: { run: engine, seconds: 330 },
  "one-object": { run: oneObject, seconds: 70 },
  burst: { run: burst, seconds: 240 },
  "beside-go": { run: besideGo, seconds: 480 },
  previews: { run: previews, seconds: 30 },
  fleet: { run: fleet, seconds: 600 },
  propose: { run: propose, seconds: 180 },
  "own-stacks": { run: ownStacks, seconds: 170 },
  packages: { run: packages, seconds: 40 },
  idle: { run: idle, seconds: 150 },
  heap: { run: heap, seconds: 200 },
  size: { run: size, seconds: 600 },
  repair: { run: repair, seconds: 25 },
  outage: { run: outage, seconds: 170 },
  admission: { run: admission, seconds: 25 },
};

interface BenchOptions {
  quick: boolean;
  json: string;
  docs: boolean;
  from?: string;
}

const command = new Command("bench")
  .description("measure the operator on control planes and databases of its own, beside what it is compared to")
  .addArgument(new Argument("[benches...]", "which ones (default: all)").choices(Object.keys(BENCHES)))
  .option("--quick", "small sizes, to see that everything works: its figures say nothing", false)
  .option("--json <file>", "where the results are written as JSON", path.join(".kindstack", "bench.json"))
  .option("--docs", "write the figures and the plot into docs/ as well; for all benches, in full size", false)
  .option("--from <file>", "show the results of an earlier run instead of measuring")
  .addHelpText(
    "after",
    `
It takes about 40 minutes. Ctrl-C ends it and removes all that it has started; the results so far are in the file.

Examples:
  npm run bench
  npm run bench -- burst size --quick
  npm run bench -- --from .kindstack/bench.json --docs`,
  )
  .action(async (names: string[], options: BenchOptions) => {
    // Not only the first signal: npm passes on what the terminal has sent as well, and all must be removed that was started.
    const measured = () => untilInterrupted((signal) => measure(names, options, signal), true);
    const results = options.from === undefined ? await measured() : await readResults(options.from);
    console.log(`\n${renderResults(results)}\n`);
    if (options.docs) await publish(results);
    else if (options.from === undefined) console.log(`${options.json} has it as JSON.`);
    const missing = wanted(names).filter((name) => !results.sections.some(({ id }) => id === name));
    if (options.from === undefined && missing.length > 0) throw new Error(`failed: ${missing.join(", ")}`);
  });

async function measure(names: readonly string[], options: BenchOptions, signal: AbortSignal): Promise<Results> {
  if (process.platform !== "linux") throw new Error("the benches read /proc, so they run on Linux only");
  setMaxListeners(0, signal); // all that runs at the same time listens to it
  const progress = new Progress();
  signal.addEventListener("abort", () => progress.detail("removing what was started"));
  const resolve = (tool: Parameters<typeof resolveBinary>[0]) =>
    resolveBinary(tool, { signal, observe: progress.observeTools });
  const context: BenchContext = {
    pulumi: await resolve("pulumi"),
    engine: await resolve("engine"),
    languageHost: await resolve("pulumi-language-nodejs"),
    goOperator: await resolve(goOperatorTool()),
    quick: options.quick,
    detail: (text) => progress.detail(text),
    signal,
  };
  const results: Results = {
    quick: options.quick,
    measuredAt: new Date().toISOString(),
    seconds: 0,
    ...describeMachine(),
    sections: [],
  };
  await fs.mkdir(path.dirname(path.resolve(options.json)), { recursive: true });
  const started = performance.now();
  for (const name of wanted(names)) {
    const bench = BENCHES[name];
    if (bench === undefined) continue;
    progress.begin(name, options.quick ? undefined : bench.seconds);
    try {
      results.sections.push(await bench.run(context));
      progress.done();
    } catch (error) {
      progress.fail(errorMessageOf(error)); // the others say something all the same
      signal.throwIfAborted();
    }
    results.seconds = Math.round((performance.now() - started) / 1000);
    await writeResults(options.json, results);
  }
  return results;
}

/** On what, and with what, the benches run. */
function describeMachine(): Pick<Results, "machine" | "versions"> {
  return {
    machine: {
      cpu: os.cpus()[0]?.model.trim() ?? "unknown",
      cores: os.availableParallelism(),
      memoryGiB: Math.round(os.totalmem() / 2 ** 30),
      system: `${os.type()} ${os.release().split("-")[0]}`,
    },
    versions: {
      Kindstack: packageVersion,
      "Node.js": process.versions.node,
      Pulumi: tools.pulumi.version,
      Kubernetes: tools["kube-apiserver"].version,
    },
  };
}

/** What the pages show is one whole run. */
async function publish(results: Results): Promise<void> {
  const missing = Object.keys(BENCHES).filter((name) => !results.sections.some(({ id }) => id === name));
  if (results.quick) throw new Error("--docs: a quick run has no figures for the pages");
  if (missing.length > 0) throw new Error(`--docs: there are no results of ${missing.join(", ")}`);
  await writePages(results);
  console.log("docs/ has them now.");
}

function wanted(names: readonly string[]): string[] {
  return Object.keys(BENCHES).filter((name) => names.length === 0 || names.includes(name));
}

command.parseAsync().catch((error: unknown) => {
  console.error(`bench: ${errorMessageOf(error)}`);
  process.exitCode = 1;
});

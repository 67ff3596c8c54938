import fs from "node:fs/promises";
import path from "node:path";
import { Argument, Command } from "commander";
import { errorMessageOf } from "../providers/errors";
import { Progress } from "../src/cli/progress";
import { resolveBinary } from "../src/toolchain/resolve";
import { admission } from "./admission";
import { burst } from "./burst";
import type { BenchContext } from "./cluster";
import { idle } from "./idle";
import { describeMachine } from "./machine";
import { oneObject } from "./one-object";
import { ownStacks } from "./own-stacks";
import { repair } from "./repair";
import { type Results, type Section, writeResults } from "./results";
import { size } from "./size";
import { renderResults } from "./tables";

/** In the order in which they run. */
const BENCHES: Record<string, (context: BenchContext) => Promise<Section>> = {
  "one-object": oneObject,
  burst,
  "own-stacks": ownStacks,
  idle,
  size,
  repair,
  admission,
};

interface BenchOptions {
  quick: boolean;
  json: string;
}

const command = new Command("bench")
  .description("measure the operator on control planes and databases of its own, beside what it is compared to")
  .addArgument(new Argument("[benches...]", "which ones (default: all)").choices(Object.keys(BENCHES)))
  .option("--quick", "small sizes, to see that everything works: its figures say nothing", false)
  .option("--json <file>", "where the results are written as JSON", path.join(".kindstack", "bench.json"))
  .action(run);

async function run(names: string[], options: BenchOptions): Promise<void> {
  if (process.platform !== "linux") throw new Error("the benches read /proc, so they run on Linux only");
  const stop = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => stop.abort(new Error("interrupted")));
  const progress = new Progress();
  const pulumi = (await resolveBinary("pulumi", { signal: stop.signal, observe: progress.observeTools })).path;
  const results: Results = {
    quick: options.quick,
    measuredAt: new Date().toISOString(),
    seconds: 0,
    ...describeMachine(),
    sections: [],
  };
  await fs.mkdir(path.dirname(path.resolve(options.json)), { recursive: true });
  const started = performance.now();
  const failed: string[] = [];
  for (const [name, bench] of Object.entries(BENCHES)) {
    if (names.length > 0 && !names.includes(name)) continue;
    progress.begin(name);
    const context: BenchContext = {
      pulumi,
      quick: options.quick,
      detail: (text) => progress.detail(text),
      signal: stop.signal,
    };
    try {
      results.sections.push(await bench(context));
      progress.done();
    } catch (error) {
      progress.fail(errorMessageOf(error));
      stop.signal.throwIfAborted();
      failed.push(name);
    }
    results.seconds = Math.round((performance.now() - started) / 1000);
    await writeResults(options.json, results);
  }
  console.log(`\n${renderResults(results)}\n\n${options.json} has it as JSON.`);
  if (failed.length > 0) throw new Error(`failed: ${failed.join(", ")}`);
}

command.parseAsync().catch((error: unknown) => {
  console.error(`bench: ${errorMessageOf(error)}`);
  process.exitCode = 1;
});

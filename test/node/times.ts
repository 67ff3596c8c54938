import { renderTable } from "../../src/text/table";

/** A step of an installation, and how many seconds it took. */
export type StepTime = readonly [step: string, seconds: number];

/** Adds how long a step takes to these. */
export async function timed<T>(times: StepTime[], step: string, work: () => Promise<T>): Promise<T> {
  const started = performance.now();
  const result = await work();
  times.push([step, (performance.now() - started) / 1000]);
  return result;
}

/** Prints what docs/install.md says of the time; how long something may take is no test's to say. */
export function reportTimes(title: string, times: readonly StepTime[]): void {
  const rows = times.map(([step, seconds]) => [seconds.toFixed(1), step]);
  const sum = times.reduce((seconds, [, more]) => seconds + more, 0);
  console.log(`${title}\n${renderTable(["seconds", "step"], [...rows, [sum.toFixed(1), "in all"]])}`);
}

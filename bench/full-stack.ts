import fs from "node:fs/promises";
import path from "node:path";
import { execa } from "execa";
import { packageRoot } from "../src/package";
import type { Report } from "../src/preview/report";
import { OBJECTS_PER_STACK } from "../stacks/contract/shared-stack";
import { type BenchContext, withBenchCluster } from "./cluster";
import { createWriters, expectRows, type Measured, withOperator } from "./lifecycle";
import { isReady } from "./object-watch";
import { atMost, type Section, seconds } from "./results";
import { CHANGED_AGE, keyOf, WRITER, type Writer, writerManifest, writersOf } from "./writers";

const FULL = { objects: OBJECTS_PER_STACK, previewed: 20, rounds: 10 };
const QUICK = { objects: 20, previewed: 5, rounds: 2 };

/** One stack with as many objects as it may have: what one change in it takes, and a preview of some of its objects. */
export async function fullStack(context: BenchContext): Promise<Section> {
  const { objects, previewed, rounds } = context.quick ? QUICK : FULL;
  const writers = writersOf("full", objects);
  return withBenchCluster(context, async (cluster) =>
    withOperator(context, cluster, cluster.startOperator, async (measured) => {
      await createWriters(measured, writers);
      const changes = await changeOneByOne(measured, writers.slice(0, rounds + 1));
      await expectRows(cluster, rounds + 1, `age = ${CHANGED_AGE}`);
      const folder = path.join(cluster.scratch, "previewed");
      await fs.mkdir(folder);
      const changed = writers.slice(-previewed).map((writer) => writerManifest(writer, CHANGED_AGE));
      await fs.writeFile(
        path.join(folder, "writers.json"),
        JSON.stringify({ apiVersion: "v1", kind: "List", items: changed }),
      );
      const previews: number[] = [];
      for (let round = 0; round <= Math.min(rounds, 3); round++) {
        context.detail(`preview ${round} of ${Math.min(rounds, 3)}`);
        previews.push(await preview(measured, folder, previewed));
      }
      return section(objects, previewed, changes, previews);
    }),
  );
}

/** @returns ms from the request until the object is Ready again, and of the update alone; without the first, a warm-up */
async function changeOneByOne(
  { context: { detail }, cluster: { client }, operator, watch }: Measured,
  writers: readonly Writer[],
): Promise<{ whole: number; update: number }[]> {
  const updateSeconds = () => operator.counted("kindstack_update_duration_seconds_sum");
  const times: { whole: number; update: number }[] = [];
  for (const [round, writer] of writers.entries()) {
    detail(`one change: round ${round} of ${writers.length - 1}`);
    const before = await updateSeconds();
    const ready = watch.until([keyOf(writer)], (object) => isReady(object) && object?.metadata.generation === 2);
    const started = performance.now();
    await client.mergePatch(WRITER, writer.name, writer.namespace, { spec: { age: CHANGED_AGE } });
    const { last } = await ready;
    times.push({ whole: last - started, update: ((await updateSeconds()) - before) * 1000 });
  }
  return times.slice(1);
}

/** @returns ms that the command took */
async function preview(
  { context: { signal }, cluster: { dev } }: Measured,
  folder: string,
  count: number,
): Promise<number> {
  const started = performance.now();
  const { stdout } = await execa(
    process.execPath,
    [path.join(packageRoot, "dist/src/cli/main.js"), "preview", "-f", folder, "--output", "json"],
    { env: dev.env, cancelSignal: signal },
  );
  const ms = performance.now() - started;
  const { objects } = JSON.parse(stdout) as Report;
  const updated = objects.filter(({ action }) => action === "update").length;
  if (updated !== count) throw new Error(`the preview shows ${updated} updates, not ${count}`);
  return ms;
}

function section(
  objects: number,
  previewed: number,
  changes: readonly { whole: number; update: number }[],
  [first = Number.NaN, ...next]: readonly number[],
): Section {
  return {
    id: "full-stack",
    title: `A stack of ${objects} PostgresWriters`,
    notes: [
      `One changed: ${changes.length} rounds, each another object, one after the other; the median, with the least and the most.`,
      "The preview is the command as it is used, from its start to its end, while the operator runs. Each object differs from the cluster's.",
    ],
    figures: [
      { what: "one changed → Ready again", ...seconds(changes.map(({ whole }) => whole)), mark: atMost(0.25) },
      { what: "the update alone", ...seconds(changes.map(({ update }) => update)) },
      { what: `kindstack preview of ${previewed} objects, first run`, ...seconds(first) },
      { what: "the same, again", ...seconds(next), mark: atMost(2) },
    ],
  };
}

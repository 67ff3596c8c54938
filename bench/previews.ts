import fs from "node:fs/promises";
import path from "node:path";
import { execa } from "execa";
import { packageRoot } from "../src/package";
import type { Report } from "../src/preview/report";
import { type BenchContext, withBenchCluster } from "./cluster";
import { createWriters, type Measured, withOperator } from "./lifecycle";
import { atMost, type Section, seconds } from "./results";
import { CHANGED_AGE, writerManifest, writersOf } from "./writers";

const FULL = { objects: 20, rounds: 3 };
const QUICK = { objects: 5, rounds: 1 };

/** What a preview of some changed objects takes. */
export async function previews(context: BenchContext): Promise<Section> {
  const { objects, rounds } = context.quick ? QUICK : FULL;
  const writers = writersOf("previewed", objects);
  return withBenchCluster(context, async (cluster) =>
    withOperator(context, cluster, cluster.startOperator, async (measured) => {
      await createWriters(measured, writers);
      const folder = path.join(cluster.scratch, "previewed");
      await fs.mkdir(folder);
      const items = writers.map((writer) => writerManifest(writer, CHANGED_AGE));
      await fs.writeFile(path.join(folder, "writers.json"), JSON.stringify({ apiVersion: "v1", kind: "List", items }));
      const times: number[] = [];
      for (let round = 0; round <= rounds; round++) {
        context.detail(`preview ${round} of ${rounds}`);
        times.push(await preview(measured, folder, objects));
      }
      return section(objects, times);
    }),
  );
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

function section(objects: number, [first = Number.NaN, ...next]: readonly number[]): Section {
  return {
    id: "previews",
    title: "Previews",
    notes: [
      "The command as it is used, from its start to its end, while the operator runs. Each object differs from the cluster's.",
    ],
    figures: [
      { what: `kindstack preview of ${objects} objects, first run`, ...seconds(first) },
      { what: "kindstack preview of 20 objects, again", ...seconds(next), mark: atMost(0.7) },
    ],
  };
}

import fs from "node:fs/promises";
import path from "node:path";
import { execa } from "execa";
import { packageRoot } from "../src/package";
import type { Report } from "../src/preview/report";
import { type BenchContext, withBenchCluster } from "./cluster";
import { createWriters, type Measured, withOperator } from "./lifecycle";
import { sampleTree } from "./processes";
import { atMost, type Section, seconds } from "./results";
import { writersOf } from "./writers";

const FULL = 1_000;
const QUICK = 20;
/** A program that makes something else of each object. */
const CHANGED = `import { defineKind, Type } from "kindstack";
import { Row } from "kindstack/providers/postgres";
const spec = Type.Object({ table: Type.String(), name: Type.String(), age: Type.Integer(), country: Type.String() });
export const postgresWriter = defineKind({
  group: "demo.yash.com", version: "v1", kind: "PostgresWriter", plural: "postgreswriters", singular: "postgreswriter",
  scope: "Namespaced", description: "", spec, status: Type.Object({}), columns: [], owns: [], directory: __dirname,
  report: () => ({}),
  program({ metadata: { name, namespace }, spec: { table, age, ...values } }, { owner, cluster }) {
    const key = \`\${namespace}/\${name}\`;
    new Row(key, { table, key: { id: key }, values: { ...values, age: age + 1 }, owner: { ...owner, cluster, namespace } });
  },
});
`;

/** What it takes to see what a changed program would do to all objects of its kind. */
export async function fleet(context: BenchContext): Promise<Section> {
  const count = context.quick ? QUICK : FULL;
  return withBenchCluster(context, async (cluster) =>
    withOperator(context, cluster, cluster.startOperator, async (measured) => {
      await createWriters(measured, writersOf("fleet", count));
      const branch = path.join(cluster.scratch, "branch");
      await fs.mkdir(branch);
      await fs.writeFile(path.join(branch, "index.ts"), CHANGED);
      await fs.symlink(path.join(packageRoot, "node_modules"), path.join(cluster.scratch, "node_modules"));
      const file = (name: string) => path.join(cluster.scratch, `${name}.json`);
      const installed = ["--kinds", "postgreswriters"];
      const whole = await timed(measured, ["preview", "--fleet", "--kinds", branch, "--report", file("whole")]);
      await expectUpdates(file("whole"), count);
      const fetched = await timed(measured, ["fleet", "fetch", ...installed, "--to", file("fleet")]);
      const ran = await timed(measured, ["fleet", "run", file("fleet"), "--kinds", branch, "--to", file("declared")]);
      const words = ["fleet", "submit", file("fleet"), file("declared"), ...installed, "--report", file("steps")];
      const submitted = await timed(measured, words);
      await expectUpdates(file("steps"), count);
      const of = `of ${count} objects`;
      return {
        id: "fleet",
        title: "A changed program",
        notes: [
          "The commands as they are used, from their start to their end, while the operator runs. Each object differs.",
        ],
        figures: [
          { what: `kindstack preview --fleet ${of}`, ...seconds(whole.ms), mark: atMost(25) },
          { what: `kindstack preview --fleet ${of}: most memory`, value: whole.peakMiB, unit: "MiB" },
          { what: `kindstack fleet fetch ${of}`, ...seconds(fetched.ms) },
          { what: `kindstack fleet run ${of}`, ...seconds(ran.ms) },
          { what: `kindstack fleet submit ${of}`, ...seconds(submitted.ms), mark: atMost(25) },
          { what: `kindstack fleet submit ${of}: most memory`, value: submitted.peakMiB, unit: "MiB" },
        ],
      };
    }),
  );
}

/** The time that a command takes, and the most memory of it and of its engine. */
async function timed({ context: { signal, detail }, cluster: { dev } }: Measured, words: string[]) {
  detail(words.slice(0, 2).join(" "));
  const started = performance.now();
  const main = path.join(packageRoot, "dist/src/cli/main.js");
  const running = execa(process.execPath, [main, ...words], { env: dev.env, cancelSignal: signal });
  const end = sampleTree(running.pid as number);
  try {
    await running;
    return { ms: performance.now() - started, peakMiB: (await end()).peakMiB };
  } finally {
    await end();
  }
}

async function expectUpdates(file: string, count: number): Promise<void> {
  const { summary } = JSON.parse(await fs.readFile(file, "utf8")) as Report;
  if (summary.update !== count) throw new Error(`the report shows ${JSON.stringify(summary)}, not ${count} updates`);
}

import { join } from "node:path";
import { ProviderHost } from "../providers/host/server";
import { providers } from "../providers/index";
import { closePool } from "../providers/postgres/pool";
import { StackEngine } from "../src/automation/engine";
import { openWorkspace } from "../src/automation/workspace";
import { Progress } from "../src/cli/progress";
import { renderTable } from "../src/table";
import { resolveBinary } from "../src/toolchain/resolve";
import { measureAdmission } from "./admission";
import { startBenchCluster } from "./cluster";
import { measureIdle } from "./idle";
import { measureOneObject } from "./one-object";
import { measureRepair } from "./repair";

const ROUNDS = 15;
const IDLE_OBJECTS = 100;
const ADMISSION_ROUNDS = 200;

/** Runs the benches on clusters of their own and prints each figure beside what it is compared to; or just `admission`. */
async function main(): Promise<void> {
  if (process.argv[2] !== "admission") await benchOperator();
  await benchAdmission();
}

async function benchAdmission(): Promise<void> {
  const progress = new Progress();
  progress.begin("decisions about namespaces, with 500 tenants of 3 namespaces");
  const { bare, dryRun, decided } = await measureAdmission(ADMISSION_ROUNDS, (line) => progress.detail(line)).catch(
    (error: unknown) => {
      progress.fail();
      throw error;
    },
  );
  progress.done();
  console.log(`\nA namespace created among 500 tenants of 3, ${ADMISSION_ROUNDS} rounds in turns, milliseconds:`);
  const row = (name: string, values: number[]) => {
    const sorted = values.toSorted((a, b) => a - b);
    const at = (share: number) => (sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN).toFixed(1);
    return [name, at(0.5), at(0.99)];
  };
  console.log(
    renderTable(
      ["", "median", "99th percentile"],
      [
        row("by an administrator, dry run: nobody is asked", bare),
        row("by an owner, dry run: decided", dryRun),
        row("by an owner: decided, counted and stored", decided),
      ],
    ),
  );
}

async function benchOperator(): Promise<void> {
  if (process.platform !== "linux") throw new Error("the benches read /proc, so they run on Linux only");
  const progress = new Progress();
  const pulumi = (await resolveBinary("pulumi", { observe: progress.observeTools })).path;
  progress.begin("starting a control plane, a database and the operator");
  const cluster = await startBenchCluster(pulumi, (line) => progress.detail(line)).catch((error: unknown) => {
    progress.fail();
    throw error;
  });
  Object.assign(process.env, cluster.env); // providers take their connections from the environment
  const host = new ProviderHost(providers);
  await host.start();
  try {
    const workspace = await openWorkspace({
      pulumi,
      directory: join(cluster.directory, "bare-cli"),
      backendUrl: `file://${join(cluster.directory, "bare-cli", "state")}`,
      passphrase: { value: "bench" },
      environment: process.env,
    });
    const engine = new StackEngine({ workspace, host, timeoutMs: 60_000, log: console });

    progress.begin("one object, through the operator and through the bare CLI");
    const rounds = await measureOneObject(cluster, engine, ROUNDS, (round) => progress.detail(`${round} of ${ROUNDS}`));
    const operator = summarize(rounds.map((round) => round.operator));
    const cli = summarize(rounds.map((round) => round.cli));

    progress.begin("one deleted RoleBinding, put back by the operator and by the bare CLI");
    const repairs = await measureRepair(cluster, engine, ROUNDS, (round) => progress.detail(`${round} of ${ROUNDS}`));
    const repair = summarize(repairs.map((round) => round.operator));
    const refresh = summarize(repairs.map((round) => round.cli));

    progress.begin("an idle operator");
    const idle = await measureIdle(cluster, IDLE_OBJECTS, (ready) =>
      progress.detail(`${ready} of ${IDLE_OBJECTS} Ready`),
    );
    progress.done();

    console.log(`\nOne PostgresWriter, ${ROUNDS} rounds in turns, seconds:`);
    console.log(
      renderTable(
        ["", "min", "median", "max"],
        [
          ["kubectl create → row there and Ready", ...operator.map(seconds)],
          ["one bare CLI update of the same program", ...cli.map(seconds)],
          ["ratio of the medians (to reach: ≤ 1.5)", "", (operator[1] / cli[1]).toFixed(2), ""],
        ],
      ),
    );
    console.log(`\nOne RoleBinding of a Tenant, deleted, ${ROUNDS} rounds in turns, seconds:`);
    console.log(
      renderTable(
        ["", "min", "median", "max"],
        [
          ["deleted → back again", ...repair.map(seconds)],
          ["one bare CLI update of the same program, with refresh", ...refresh.map(seconds)],
          ["ratio of the medians (to reach: ≤ 1.5)", "", (repair[1] / refresh[1]).toFixed(2), ""],
        ],
      ),
    );
    console.log(`\nThe operator at rest with ${idle.objects} PostgresWriters more:`);
    console.log(
      renderTable(
        ["", "measured", "to reach"],
        [
          ["child processes", idle.children, 0],
          ["resident memory, MiB", idle.residentMiB.toFixed(0), "< 200"],
          ["CPU, % of a core", idle.cpuPercent.toFixed(1), ""],
        ],
      ),
    );
  } finally {
    progress.fail(); // of the step that threw, if one did
    host.stop();
    await closePool();
    await cluster.stop();
  }
}

function summarize(values: number[]): [min: number, median: number, max: number] {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (index: number) => sorted[index] ?? Number.NaN;
  return [at(0), at(Math.floor(sorted.length / 2)), at(sorted.length - 1)];
}

function seconds(milliseconds: number): string {
  return (milliseconds / 1000).toFixed(2);
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});

import { once } from "node:events";
import path from "node:path";
import { Command } from "commander";
import pino from "pino";
import pretty from "pino-pretty";
import { TerminalError } from "../../providers/errors";
import type { AnyKind } from "../../stacks/contract/kind";
import { type LoadedKinds, portableWords, requireKinds } from "../../stacks/kinds/catalog";
import { CONSOLE_PATH } from "../console/paths";
import {
  type DevCluster,
  DevClusterRunningError,
  devClusterStatus,
  startDevCluster,
  stopDevCluster,
} from "../dev/cluster";
import { followFile } from "../dev/follow";
import { layoutOf, logFileOf } from "../dev/layout";
import { operator } from "../dev/operator";
import { applySamples, describeSamples, needsControllers, type SampleState, untilSamplesReady } from "../dev/samples";
import { shellWord } from "../text/shell";
import { renderTable } from "../text/table";
import { resolveEngine } from "../toolchain/engine";
import { chosenKinds, openPackages, type PackageOptions, packageWords, withPackageOptions } from "./package-options";
import { duration, Progress, secondsSince } from "./progress";
import { untilInterrupted } from "./until-interrupted";

const DEFAULT_DIR = path.join(".kindstack", "dev");
const DIR_OPTION = ["--dir <dir>", `directory of the cluster's data (default: "${DEFAULT_DIR}")`] as const;

interface DevOptions extends PackageOptions {
  dir?: string;
  detach: boolean;
  operator: boolean;
  samples: boolean;
  fresh: boolean;
  watch: boolean;
}

export function devCommand(): Command {
  const plain = new Command("dev")
    .description("run a Kubernetes control plane, PostgreSQL and the operator on this machine, with samples")
    .option(...DIR_OPTION);
  const dev = withPackageOptions(plain)
    .option("--watch", "apply each edit of your kinds' files to the cluster", false)
    .option("--detach", "return when the cluster is ready; stop it with `kindstack dev stop`", false)
    .option("--no-operator", "only the control plane and PostgreSQL, without operator and samples")
    .option("--no-samples", "do not apply the samples")
    .option("--fresh", "delete the data of earlier runs first", false)
    .addHelpText(
      "after",
      `
Ctrl-C stops everything. The data stays in the directory for the next start.

Examples:
  kindstack dev                # in the foreground
  kindstack dev --detach       # in the background
  kindstack dev --kinds ./src  # kinds of your own
  kindstack dev --kinds ./src --watch  # the same, with each edit in the cluster within seconds
  . .kindstack/dev/env         # for kubectl and psql in this shell`,
    )
    .action((options: DevOptions, self: Command) => untilInterrupted((signal) => up(options, self, signal), true));
  dev
    .command("stop")
    .description("stop the cluster; its data stays")
    .option(...DIR_OPTION)
    .addHelpText("after", "\nExample:\n  kindstack dev stop")
    .action((_, command: Command) => stop(directoryOf(command)));
  dev
    .command("status")
    .description("show the cluster's processes; exit code 1 unless all of them run")
    .option(...DIR_OPTION)
    .addHelpText("after", "\nExample:\n  kindstack dev status")
    .action((_, command: Command) => status(directoryOf(command)));
  return dev;
}

/** `--dir` may come before or after the name of the subcommand. */
function directoryOf(command: Command): string {
  const { dir = DEFAULT_DIR }: { dir?: string } = { ...command.parent?.opts(), ...command.opts() };
  return dir;
}

async function up(options: DevOptions, command: Command, signal: AbortSignal): Promise<void> {
  const { dir = DEFAULT_DIR, fresh, detach, watch } = options;
  const chosen = await describedKinds(options, command);
  const kinds = requireKinds(chosen);
  if (watch && chosen.files.length === 0) {
    throw new TerminalError("Misconfigured", "--watch: no files to watch; choose kinds of your own: --kinds ./src");
  }
  const progress = new Progress();
  let cluster: DevCluster | undefined;
  let unfollow = () => {};
  let isInterrupted = false;
  // Neither a signal handler nor a detached child keeps this process alive.
  const alive = setInterval(() => {}, 60_000);
  // A closed terminal must not prevent the clean-up.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
  try {
    const { observeTools } = progress;
    // First, because it may take minutes or fail, and nothing else runs yet.
    const engine = options.operator ? await resolveEngine({ signal, observe: observeTools }) : undefined;
    let step: string | undefined = "development cluster";
    const startedAt = Date.now();
    const tell = ({ kind, name }: SampleState) =>
      progress.note(`${kind} ${name}: Ready after ${duration(secondsSince(startedAt))}`);
    let early: Promise<SampleState[]> = Promise.resolve([]);
    let isServing = false;
    cluster = await startDevCluster({
      dir,
      fresh,
      signal,
      observeTools(event) {
        if (isServing && event.type === "making") {
          progress.done();
          print(worksAlready(dir, kinds));
          isServing = false;
        }
        observeTools(event);
      },
      log(message) {
        if (step !== undefined) progress.begin(step); // the tools are there, their own steps are over
        step = undefined;
        progress.detail(message);
      },
      async onServing(serving) {
        step = "controllers and nodes";
        if (engine === undefined) return;
        progress.begin("operator");
        const component = operator(serving, engine, {
          kinds: portableWords(chosen.words),
          watch,
          args: packageWords(options),
        });
        const onSpawn = (logFile: string) => {
          if (!detach) unfollow = followFile(logFile, terminalLog());
        };
        await serving.start({ ...component, onSpawn });
        progress.done();
        isServing = true;
        if (!options.samples) return;
        const applied = await applySamples(
          serving,
          kinds.filter((kind) => !needsControllers(kind)),
        );
        early = untilSamplesReady(serving, applied, tell, signal);
        early.catch(() => undefined); // awaited below, unless the start fails before
      },
    });
    let unready: SampleState[] = [];
    if (options.operator && options.samples) {
      progress.begin("samples");
      const applied = await applySamples(cluster, kinds.filter(needsControllers));
      const samples = [...(await early), ...(await untilSamplesReady(cluster, applied, tell, signal))];
      unready = samples.filter(({ ready }) => !ready);
      const tables = await describeSamples(cluster, samples);
      progress.done();
      print(`\n${tables.join("\n\n")}\n`);
    }
    progress.done();
    print(hints(dir, kinds, unready, options));
    if (detach) {
      if (unready.length > 0) process.exitCode = 1; // a script must not take it for a working state
      return;
    }
    const interrupted = signal.aborted ? undefined : once(signal, "abort").then(() => undefined);
    const failure = await Promise.race([cluster.failure, interrupted]);
    if (failure !== undefined) throw failure;
    isInterrupted = true;
  } catch (error) {
    progress.fail();
    await stopAll(cluster, progress);
    if (error instanceof DevClusterRunningError) {
      throw new Error(`${error.message}. To stop it: kindstack dev stop${dirArgument(dir)}`);
    }
    throw signal.aborted ? new Error("interrupted") : error;
  } finally {
    if (isInterrupted) await stopAll(cluster, progress);
    unfollow();
    clearInterval(alive);
  }
}

/** The kinds as they describe themselves. Their code is evaluated as in the operator, in processes that end at once. */
async function describedKinds(options: DevOptions, command: Command): Promise<LoadedKinds> {
  const packages = openPackages(options, pino({ level: "silent" }));
  try {
    return await chosenKinds(command, packages, options);
  } finally {
    packages.close();
  }
}

async function stopAll(cluster: DevCluster | undefined, progress: Progress): Promise<void> {
  if (cluster === undefined) return;
  progress.begin("stopping");
  await cluster.stop((message) => progress.detail(message));
  progress.done();
}

async function stop(dir: string): Promise<void> {
  const progress = new Progress();
  progress.begin("stopping");
  try {
    const ran = await stopDevCluster(dir, (message) => progress.detail(message));
    progress.done();
    print(ran ? `stopped: ${path.resolve(dir)}` : `nothing runs in ${path.resolve(dir)}`);
  } catch (error) {
    progress.fail();
    throw error;
  }
}

function status(dir: string): void {
  const { state, processes } = devClusterStatus(dir);
  print(`${state}: ${path.resolve(dir)}`);
  if (state === "stopped") {
    throw new Error(`no development cluster runs there; start one with: kindstack dev${dirArgument(dir)}`);
  }
  const rows = processes.map(({ name, pid, port, running, logFile }) => {
    return [name, pid, port, running ? "running" : "ended", logFile];
  });
  print(renderTable(["name", "pid", "port", "state", "log"], rows));
  if (state === "damaged") {
    throw new Error(`some processes have exited; restart them with: kindstack dev${dirArgument(dir)}`);
  }
}

/** While controllers and nodes are made, which takes minutes the first time. */
function worksAlready(dir: string, kinds: readonly AnyKind[]): string {
  const waiting = kinds.filter(needsControllers).map(({ kind }) => kind);
  return [
    "The API server, PostgreSQL and the operator work already. In a shell:",
    ...commands(dir, kinds),
    ...(waiting.length > 0 ? [`Controllers and nodes, which these kinds need, follow: ${waiting.join(", ")}`] : []),
  ].join("\n");
}

function commands(dir: string, kinds: readonly AnyKind[]): string[] {
  return [
    `  . ${shownPath(layoutOf(dir).env)}`,
    `  kubectl get nodes${kinds.map((kind) => `,${kubectlName(kind, kinds)}`).join("")} --all-namespaces`,
    "  psql -c 'table students'",
  ];
}

function hints(
  dir: string,
  kinds: readonly AnyKind[],
  unready: readonly SampleState[],
  { detach, watch }: DevOptions,
): string {
  const layout = layoutOf(dir);
  const operator = devClusterStatus(dir).processes.find(({ name }) => name === "operator");
  const names = unready.map(({ kind, name }) => `${kind} ${name}`).join(", ");
  return [
    unready.length === 0
      ? "Ready. In a shell:"
      : `Running, but not Ready: ${names}. The operator tries again; its log: ${shownPath(logFileOf(layout, "operator"))}. In a shell:`,
    ...commands(dir, kinds),
    ...(operator ? [`  console: http://127.0.0.1:${operator.port}${CONSOLE_PATH}`] : []),
    ...(watch ? [`  edits: applied as you save; errors are in ${shownPath(logFileOf(layout, "operator"))}`] : []),
    detach ? `To stop it: kindstack dev stop${dirArgument(dir)}` : "To stop it: Ctrl-C",
  ].join("\n");
}

function shownPath(file: string): string {
  const relative = path.relative(process.cwd(), file);
  return shellWord(relative.startsWith("..") ? file : `./${relative}`);
}

/** The unambiguous plural for kubectl: with the beginning of the group where two kinds share the plural. */
function kubectlName({ plural, group }: AnyKind, kinds: readonly AnyKind[]): string {
  const alone = kinds.filter((kind) => kind.plural === plural).length === 1;
  return alone ? plural : `${plural}.${group.split(".")[0]}`;
}

function dirArgument(dir: string): string {
  return dir === DEFAULT_DIR ? "" : ` --dir ${shellWord(dir)}`;
}

/** Forwards the operator's log: formatted on a terminal, unchanged elsewhere. */
function terminalLog(): (bytes: Buffer) => void {
  if (!process.stdout.isTTY) return (bytes) => process.stdout.write(bytes);
  const stream = pretty({ colorize: true, destination: 1, sync: true });
  return (bytes) => stream.write(bytes);
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

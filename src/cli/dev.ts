import { once } from "node:events";
import path from "node:path";
import { Command } from "commander";
import pretty from "pino-pretty";
import { TerminalError } from "../../providers/errors";
import { loadKinds, portableWords } from "../../stacks/catalog";
import type { AnyKind } from "../../stacks/contract/kind";
import {
  adminClient,
  type DevCluster,
  DevClusterRunningError,
  devClusterStatus,
  startDevCluster,
  stopDevCluster,
} from "../dev/cluster";
import { quoteForShell } from "../dev/environment";
import { followFile } from "../dev/follow";
import { layoutOf, logFileOf } from "../dev/layout";
import { operator } from "../dev/operator";
import { applySamples, ownedNamespaces, students } from "../dev/samples";
import { CONSOLE_PATH } from "../telemetry/console-paths";
import { renderTable } from "../text/table";
import { resolvePulumi } from "../toolchain/pulumi";
import { allKinds, type KindsOption, kindsOption } from "./kinds-option";
import { Progress } from "./progress";

const DEFAULT_DIR = path.join(".kindstack", "dev");
const DIR_OPTION = ["--dir <dir>", `directory of the cluster's data (default: "${DEFAULT_DIR}")`] as const;

interface DevOptions extends KindsOption {
  dir?: string;
  detach: boolean;
  operator: boolean;
  samples: boolean;
  fresh: boolean;
  watch: boolean;
}

export function devCommand(): Command {
  const dev = new Command("dev")
    .description("run a Kubernetes control plane, PostgreSQL and the operator on this machine, with samples")
    .option(...DIR_OPTION)
    .addOption(kindsOption("kinds to serve"))
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
    .action((options: DevOptions) => up(options));
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

/** `--dir` is understood before and after the name of the subcommand. */
function directoryOf(command: Command): string {
  return command.opts<{ dir?: string }>().dir ?? command.parent?.opts<{ dir?: string }>().dir ?? DEFAULT_DIR;
}

async function up(options: DevOptions): Promise<void> {
  const dir = options.dir ?? DEFAULT_DIR;
  const kinds = allKinds(options);
  const words = options.kinds?.words ?? [];
  if (options.watch && (options.kinds ?? loadKinds()).files.length === 0) {
    throw new TerminalError("Misconfigured", "--watch: no files to watch; choose kinds of your own: --kinds ./src");
  }
  const progress = new Progress();
  const interruption = catchSignals();
  const { signal } = interruption;
  let cluster: DevCluster | undefined;
  let unfollow = () => {};
  let interrupted = false;
  try {
    const observeTools = progress.observeTools;
    // First, so that what may take minutes or fail is over before anything runs.
    const pulumi = options.operator ? await resolvePulumi({ signal, observe: observeTools }) : undefined;
    let begun = false;
    cluster = await startDevCluster({
      dir,
      fresh: options.fresh,
      signal,
      observeTools,
      log(message) {
        if (!begun) progress.begin("development cluster"); // the tools are there, their own steps are over
        begun = true;
        progress.detail(message);
      },
    });
    if (pulumi !== undefined) {
      progress.begin("operator");
      await cluster.start(
        {
          ...(await operator(cluster, path.join(__dirname, "main.js"), pulumi, {
            kinds: portableWords(words),
            watch: options.watch,
          })),
          onSpawn: (logFile) => {
            if (!options.detach) unfollow = followFile(logFile, terminalLog());
          },
        },
        signal,
      );
      if (options.samples) {
        progress.begin("samples");
        await showSamples(cluster, kinds, progress, signal);
      }
    }
    progress.done();
    print(hints(dir, kinds, options));
    if (options.detach) return;
    const failure = await Promise.race([cluster.failure, interruption.signalled]);
    if (failure !== undefined) throw failure;
    interrupted = true;
  } catch (error) {
    progress.fail();
    await stopAll(cluster, progress);
    if (error instanceof DevClusterRunningError) {
      throw new Error(`${error.message}. To stop it: kindstack dev stop${dirArgument(dir)}`);
    }
    throw signal.aborted ? new Error("interrupted") : error;
  } finally {
    if (interrupted) await stopAll(cluster, progress);
    unfollow();
    interruption.release();
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
  const { state, processes, dir: directory } = devClusterStatus(dir);
  print(`${state}: ${directory}`);
  if (state === "stopped") {
    throw new Error(`no development cluster runs there; start one with: kindstack dev${dirArgument(dir)}`);
  }
  print(
    renderTable(
      ["name", "pid", "port", "state", "log"],
      processes.map(({ name, pid, port, running, logFile }) => [
        name,
        pid,
        port,
        running ? "running" : "ended",
        logFile,
      ]),
    ),
  );
  if (state === "damaged") {
    throw new Error(`some processes have exited; restart them with: kindstack dev${dirArgument(dir)}`);
  }
}

/** Applies the samples and shows what came of them. */
async function showSamples(
  cluster: DevCluster,
  kinds: readonly AnyKind[],
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  const client = adminClient(cluster.kubeconfig);
  try {
    const outcomes = await applySamples(client, kinds, signal);
    const [rows, namespaces] = [await students(cluster.postgres), await ownedNamespaces(client)];
    progress.done();
    const tables = [
      renderTable(
        ["kind", "name", "ready", "message"],
        outcomes.map(({ kind, name, ready, message }) => [kind, name, ready ? "True" : "False", message]),
      ),
      namespaces.length > 0 &&
        renderTable(
          ["namespace", "role bindings"],
          namespaces.map(({ name, roleBindings }) => [name, roleBindings.join("; ")]),
        ),
      rows.length > 0 &&
        renderTable(
          ["row of students", "name", "age", "country"],
          rows.map(({ id, name, age, country }) => [id, name, age, country]),
        ),
    ];
    print(`\n${tables.filter(Boolean).join("\n\n")}\n`);
  } finally {
    await client.close();
  }
}

function hints(dir: string, kinds: readonly AnyKind[], { detach, watch }: DevOptions): string {
  const layout = layoutOf(dir);
  return [
    "Ready. In a shell:",
    `  . ${shownPath(layout.env)}`,
    `  kubectl get nodes${kinds.map((kind) => `,${kubectlName(kind, kinds)}`).join("")} --all-namespaces`,
    "  psql -c 'table students'",
    ...consoleHints(dir),
    ...(watch ? [`  edits: applied as you save; errors are in ${shownPath(logFileOf(layout, "operator"))}`] : []),
    detach ? `To stop it: kindstack dev stop${dirArgument(dir)}` : "To stop it: Ctrl-C",
  ].join("\n");
}

function shownPath(file: string): string {
  const shown = path.relative(process.cwd(), file).startsWith("..") ? file : `./${path.relative(process.cwd(), file)}`;
  return /^[\w./-]+$/.test(shown) ? shown : quoteForShell(shown);
}

function consoleHints(dir: string): string[] {
  const operator = devClusterStatus(dir).processes.find(({ name }) => name === "operator");
  return operator === undefined ? [] : [`  console: http://127.0.0.1:${operator.port}${CONSOLE_PATH}`];
}

/** What kubectl takes for this kind and no other: the plural, with the beginning of the group where two have the same. */
function kubectlName({ plural, group }: AnyKind, kinds: readonly AnyKind[]): string {
  const alone = kinds.filter((kind) => kind.plural === plural).length === 1;
  return alone ? plural : `${plural}.${group.split(".")[0]}`;
}

function dirArgument(dir: string): string {
  return dir === DEFAULT_DIR ? "" : ` --dir ${/^[\w./-]+$/.test(dir) ? dir : quoteForShell(dir)}`;
}

/** Passes the operator's log on: for people where people read it, as it is elsewhere. */
function terminalLog(): (bytes: Buffer) => void {
  if (!process.stdout.isTTY) return (bytes) => process.stdout.write(bytes);
  const stream = pretty({ colorize: true, destination: 1, sync: true });
  return (bytes) => stream.write(bytes);
}

/** From here on, a signal to end is a wish to be obeyed in order and not the end itself. */
function catchSignals() {
  const controller = new AbortController();
  const signalled = once(controller.signal, "abort").then(() => undefined);
  const obey = () => controller.abort(new Error("interrupted"));
  const names = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const name of names) process.on(name, obey);
  // Waiting for a signal, or for a child that may outlive it, does not keep a process alive.
  const alive = setInterval(() => {}, 60_000);
  // A terminal that has gone must not prevent the rest from being stopped.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
  return {
    signal: controller.signal,
    signalled,
    release() {
      clearInterval(alive);
      for (const name of names) process.off(name, obey);
    },
  };
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

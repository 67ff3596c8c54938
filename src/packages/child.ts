import { format } from "node:util";
import { dataOf, errorOf } from "../../providers/error-data";
import { RetryableError, TerminalError } from "../../providers/errors";
import type { Log } from "../../providers/log";
import { withProgram } from "../../providers/registration";
import { kindsIn } from "../../stacks/kinds/module";
import { currentUnhandled, withUnhandled } from "../automation/unhandled";
import { Budget } from "../queue/budget";
import { logConsoleLines } from "../telemetry/console-lines";
import { type Caller, PackageCode } from "./code";
import { batching, type FromPackage, type ToPackage, titleOf } from "./messages";
import { Sessions } from "./sessions";
import { bounded } from "./size";

/*
 * The process of a package: it loads the package, and answers what the operator asks of the kinds. It has no credentials, and
 * ends with the operator.
 */

const [entry = ""] = process.argv.slice(2);
/** The calls that run. */
const running = new Map<number, AbortController>();
const asked = new Map<number, PromiseWithResolvers<unknown>>();
let lastAsk = 0;

const send = process.send?.bind(process);
/** Libraries that find a parent tell it things, such as that they are ready. */
delete process.send;

const enqueue = batching<FromPackage>((messages) => {
  try {
    send?.(messages);
  } catch {
    for (const message of messages) send?.([cloneable(message)]);
  }
});

const post = (message: FromPackage) => enqueue(bounded(message));

/** What cannot cross, such as a function among the inputs of a resource, is the call's error. */
function cloneable(message: FromPackage): FromPackage {
  try {
    structuredClone(message);
    return message;
  } catch (error) {
    if (message.type === "answer") return { type: "answer", id: message.id, error: dataOf(error) };
    if (message.type === "log") return { ...message, fields: { fields: format(message.fields) } };
    return message;
  }
}

/** Lines and errors that are told at once, and a second from then on: a loop that logs would keep the operator busy. */
const told = { log: new Budget(1_000, 100), unhandled: new Budget(100, 1) };
const warnings = new Budget(1, 0.1);

function tell(message: Extract<FromPackage, { type: keyof typeof told }>): void {
  const budget = told[message.type];
  if (budget.waitMs === 0) {
    budget.spend(1);
    post(message);
    return;
  }
  if (warnings.waitMs > 0) return;
  warnings.spend(1);
  post({
    type: "log",
    call: message.call,
    level: "warn",
    message: "the code of kinds logs or throws too much: the rest is left out",
  });
}

/** The log of a call, also for what the call leaves behind. */
function logOf(call: number | undefined): Log {
  const write = (level: keyof Log) => (message: string, fields?: object) =>
    tell({ type: "log", call, level, message, fields });
  return { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
}

const sessions = new Sessions();

/** Runs code up to its first pause. The operator reads from the title whose code it is that never makes one. */
function titled<T>(call: number, work: () => T): T {
  process.title = titleOf(call);
  try {
    return work();
  } finally {
    process.title = titleOf();
  }
}

/** The error of a package that does not load is that of each call. */
function load(): () => PackageCode {
  try {
    const code = new PackageCode(kindsIn(entry));
    return () => code;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}

async function answer({ id, target, args, session, hold }: Extract<ToPackage, { type: "call" }>): Promise<void> {
  const abort = new AbortController();
  running.set(id, abort);
  const log = logOf(id);
  const progress = (message: string) => post({ type: "progress", call: id, message: String(message) });
  const caller: Caller = {
    log,
    titled: (work) => titled(id, work),
    context: session && sessions.contextOf(session, { signal: abort.signal, log, progress, hold }),
    ask: (method, ...given) => {
      const question = Promise.withResolvers<unknown>();
      post({ type: "ask", id: ++lastAsk, call: id, method, args: given });
      asked.set(lastAsk, question);
      return question.promise;
    },
  };
  const unhandled = (error: unknown) => tell({ type: "unhandled", call: id, error: dataOf(error) });
  try {
    const loaded = code();
    const run = async () => titled(id, () => loaded.call(target, args, caller));
    const value = await withUnhandled(unhandled, () => withProgram({ log }, run));
    post({ type: "answer", id, value });
  } catch (error) {
    post({ type: "answer", id, error: dataOf(error) });
  } finally {
    running.delete(id);
  }
}

function receive(message: ToPackage): void {
  switch (message.type) {
    case "call":
      void answer(message);
      break;
    case "abort":
      running.get(message.id)?.abort(errorOf(message.error));
      break;
    case "endSession":
      sessions.end(message.id, errorOf(message.error));
      break;
    case "allow":
      sessions.allow(message.ms);
      break;
    case "ping":
      post({ type: "pong", id: message.id });
      break;
    case "answer": {
      const question = asked.get(message.id);
      asked.delete(message.id);
      if (message.error === undefined) question?.resolve(message.value);
      else question?.reject(errorOf(message.error));
    }
  }
}

process.on("disconnect", () => process.reallyExit(0));

// A program that would end the process ends its own work; with it, that of all objects of the package would end.
process.exit = ((exitCode?: number) => {
  const error = new RetryableError("ProgramFailed", `the kind's code calls process.exit(${exitCode ?? ""})`);
  if (currentUnhandled() === undefined) process.reallyExit(exitCode ?? 0);
  throw error;
}) as typeof process.exit;

const killOwn = process.kill.bind(process);
process.kill = (pid, signal) => {
  if (pid === process.pid) return killOwn(pid, signal);
  throw new TerminalError("InvalidProgram", `the kind's code calls process.kill(${pid}), which is not its own process`);
};

logConsoleLines((level, fields) => logOf(undefined)[level]("console", fields));

const code = load();
post({ type: "loaded" });
process.on("message", (messages: ToPackage[]) => {
  for (const message of messages) receive(message);
});

declare global {
  namespace NodeJS {
    interface Process {
      reallyExit(code: number): never;
    }
  }
}

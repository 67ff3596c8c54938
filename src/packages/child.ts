import { AsyncLocalStorage } from "node:async_hooks";
import { format } from "node:util";
import { dataOf, errorOf } from "../../providers/error-data";
import { RetryableError } from "../../providers/errors";
import type { Log } from "../../providers/log";
import { runningProgram, withProgram } from "../../providers/running-program";
import { kindsIn } from "../../stacks/kinds/module";
import { withUnhandled } from "../automation/unhandled";
import { type Caller, PackageCode } from "./code";
import { batching, type FromPackage, type ToPackage } from "./messages";
import { Sessions } from "./sessions";

/*
 * The process of a package: it loads the package, and answers what the operator asks of the kinds. It has no credentials, and
 * ends with the operator.
 */

const [entry = ""] = process.argv.slice(2);
/** A call that runs. */
interface Running {
  id: number;
  abort: AbortController;
}
const running = new Map<number, Running>();
const asked = new Map<number, PromiseWithResolvers<unknown>>();
const current = new AsyncLocalStorage<Running>();
let lastAsk = 0;

const post = batching<FromPackage>((messages) => {
  try {
    process.send?.(messages);
  } catch {
    for (const message of messages) process.send?.([cloneable(message)]);
  }
});

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

/** The log of a call, also for what the call leaves behind. */
function logOf(call: number | undefined): Log {
  const write = (level: keyof Log) => (message: string, fields?: object) =>
    post({ type: "log", call, level, message, fields });
  return { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
}

const sessions = new Sessions();

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
  const call = { id, abort: new AbortController() };
  running.set(id, call);
  const log = logOf(id);
  const caller: Caller = {
    log,
    signal: call.abort.signal,
    context: session && sessions.contextOf(session, { signal: call.abort.signal, log, hold }),
    ask: (method, ...given) => {
      const question = Promise.withResolvers<unknown>();
      asked.set(++lastAsk, question);
      post({ type: "ask", id: lastAsk, call: id, method, args: given });
      return question.promise;
    },
  };
  const unhandled = (error: unknown) => post({ type: "unhandled", call: id, error: dataOf(error) });
  try {
    const loaded = code();
    const value = await current.run(call, () =>
      withUnhandled(unhandled, () => withProgram({ log }, async () => loaded.call(target, args, caller))),
    );
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
      running.get(message.id)?.abort.abort(errorOf(message.error));
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
  if (current.getStore() === undefined) process.reallyExit(exitCode ?? 0);
  throw error;
}) as typeof process.exit;

for (const [method, level] of Object.entries({
  debug: "debug",
  log: "info",
  info: "info",
  warn: "warn",
  error: "error",
})) {
  console[method as "log"] = (...words: unknown[]) => {
    const log = runningProgram().log ?? logOf(undefined);
    log[level as keyof Log]("console", { line: format(...words) });
  };
}

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

import { AsyncLocalStorage } from "node:async_hooks";
import { invalidProgram } from "../../providers/errors";
import { withDeclarations } from "../../providers/kubernetes/declared-objects";
import type { ProgramContext, ProgramLog } from "./capabilities";
import { type AnyKind, kindName } from "./kind";
import { type KindObject, objectKey } from "./object";
import type { Referenced } from "./references";

const logs = new AsyncLocalStorage<ProgramLog>();

/** The log of the program that runs, for what it prints by `console`. */
export function currentProgramLog(): ProgramLog | undefined {
  return logs.getStore();
}

/**
 * Runs the program of an object.
 *
 * @param context without `log`, it goes to standard error
 * @throws what the program throws; TerminalError `InvalidProgram` where it declares what the kind may not
 */
export function runProgram(
  kind: AnyKind,
  object: KindObject,
  { log = standardError(kind, object), referenced = new Map(), ...context }: RunContext,
): void | Promise<void> {
  const read = <T extends object>(reference: string): T | undefined => {
    if (Object.hasOwn(kind.capabilities.reads ?? {}, reference)) return referenced.get(reference) as T | undefined;
    throw invalidProgram(`the program reads ${JSON.stringify(reference)}, which reads of ${kind.kind} lacks`);
  };
  return logs.run(log, () => withDeclarations(kind, () => kind.program(object, { ...context, log, read })));
}

/** What a program is told, by who runs it. */
export type RunContext = Omit<ProgramContext, "log" | "read"> & { log?: ProgramLog; referenced?: Referenced };

function standardError(kind: AnyKind, { metadata }: KindObject): ProgramLog {
  const write = (level: string) => (message: string, fields?: object) => {
    const shown = fields === undefined ? "" : ` ${JSON.stringify(fields)}`;
    process.stderr.write(`${level} ${kindName(kind)} ${objectKey(metadata)}: ${message}${shown}\n`);
  };
  return { debug: () => {}, info: write("info"), warn: write("warn"), error: write("error") };
}

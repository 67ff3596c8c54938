import { invalidProgram } from "../../providers/errors";
import { standardError } from "../../providers/log";
import { withProgram } from "../../providers/registration";
import { type AnyKind, type Kind, kindName } from "./kind";
import { type KindObject, objectKey } from "./object";
import type { RunContext } from "./run-context";

/**
 * Runs the program of an object.
 *
 * @param context without `log`, it goes to standard error
 * @throws what the program throws; TerminalError `InvalidProgram` where it declares what the kind may not
 */
export function runProgram<Spec, Status>(
  kind: AnyKind | Kind<Spec, Status>,
  object: KindObject<Spec, Status>,
  {
    log = standardError(`${kindName(kind)} ${objectKey(object.metadata)}`),
    referenced = new Map(),
    ...context
  }: RunContext,
): void | Promise<void> {
  if ("remote" in kind && kind.remote) return kind.remote.run(object, { ...context, log, referenced });
  const read = <T extends object>(reference: string): T | undefined => {
    if (Object.hasOwn(kind.capabilities.reads ?? {}, reference)) return referenced.get(reference) as T | undefined;
    throw invalidProgram(`the program reads ${JSON.stringify(reference)}, which reads of ${kind.kind} lacks`);
  };
  const objects = { kind: kind.kind, owns: kind.owns, names: new Map() };
  return withProgram({ log, objects }, () => kind.program(object, { ...context, log, read }));
}

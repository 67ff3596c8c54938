import { AsyncLocalStorage } from "node:async_hooks";
import { invalidProgram } from "../errors";
import { groupOf } from "./object-types";
import type { Manifest, ObjectType } from "./types";

/** What a program may declare, and what it has. */
interface Declarations {
  kind: string;
  owns: readonly ObjectType[];
  /** The names of resources, by the object that each describes. */
  names: Map<string, string>;
}

const running = new AsyncLocalStorage<Declarations>();

/** Runs a kind's program, which may declare only objects of the types that the kind owns, each once. */
export function withDeclarations<T>({ kind, owns }: Pick<Declarations, "kind" | "owns">, program: () => T): T {
  return running.run({ kind, owns, names: new Map() }, program);
}

/**
 * Notes that a resource of the running program describes an object. Outside of a kind's program, everything is allowed.
 *
 * @throws TerminalError `InvalidProgram` for a type that nothing would watch, and for an object that two resources would
 *   apply in turn
 */
export function declareObject(resource: string, { apiVersion, kind: type, metadata }: Manifest): void {
  const declarations = running.getStore();
  if (declarations === undefined) return;
  const { kind, owns, names } = declarations;
  if (!owns.some((owned) => owned.apiVersion === apiVersion && owned.kind === type)) {
    const line = `{ apiVersion: ${JSON.stringify(apiVersion)}, kind: ${JSON.stringify(type)} }`;
    throw invalidProgram(
      `the resource ${JSON.stringify(resource)} is a ${type} of ${apiVersion}: add ${line} to owns of ${kind}`,
    );
  }
  const place = [metadata?.namespace, metadata?.name].filter(Boolean).join("/");
  const id = `${groupOf(apiVersion)}/${type}/${place}`;
  const other = names.get(id);
  if (other !== undefined) {
    const both = `${JSON.stringify(other)} and ${JSON.stringify(resource)}`;
    throw invalidProgram(`the resources ${both} are the same object, ${type} ${place}: declare it once`);
  }
  names.set(id, resource);
}

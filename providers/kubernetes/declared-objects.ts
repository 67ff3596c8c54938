import { invalidProgram } from "../errors";
import { runningProgram } from "../running-program";
import { groupOf } from "./object-types";
import type { Manifest } from "./types";

/**
 * Notes that a resource of the running program describes an object. Outside of a kind's program, everything is allowed.
 *
 * @throws TerminalError `InvalidProgram` for a type that nothing would watch, and for an object that two resources would
 *   apply in turn
 */
export function declareObject(resource: string, { apiVersion, kind: type, metadata }: Manifest): void {
  const { objects } = runningProgram();
  if (objects === undefined) return;
  const { kind, owns, names } = objects;
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

import { type DeclaredResource, declaredBy } from "../../providers/registration";
import { serveProgram } from "./language-server";

/** What a Pulumi program is here: a function that registers resources. */
export type Program = () => void | Promise<void>;

/** A program as an engine runs it: as data, or at the address of its language runtime. */
export interface PreparedProgram {
  parameter: { resources: DeclaredResource[] } | { address: string };
  /** What the program threw while the engine ran it, with the class that is lost on the way through the engine. */
  error(): unknown;
  close(): void;
}

/**
 * Runs a program for the engine: before it, or while the engine asks for it.
 *
 * @param sdkRuntime see {@link Capabilities.sdkRuntime}
 * @throws what the program throws before
 */
export async function prepareProgram(program: Program, sdkRuntime: boolean | undefined): Promise<PreparedProgram> {
  if (sdkRuntime) return serveProgram(program);
  const resources = await declaredBy(program);
  return { parameter: { resources }, error: () => undefined, close: () => {} };
}

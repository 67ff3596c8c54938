import { AsyncLocalStorage } from "node:async_hooks";
import type { Resource } from "@pulumi/pulumi/resource";
import type { Log } from "./log";
import type { PlainOptions } from "./resource-options";

/** What a program says of one resource. */
export interface Declaration {
  /** Pulumi's type token. */
  type: string;
  name: string;
  /** A component has none. */
  inputs?: object;
  /** The stack, if there is none. */
  parent?: Resource | undefined;
  options?: PlainOptions;
}

/** What a program runs in. Each is absent where nothing has set it, as in a plain `pulumi up`. */
export interface RunningProgram {
  /** Where its resources are registered; otherwise the SDK does that. */
  registrations?: { register(declaration: Declaration): Resource };
  /** What it may declare: objects of the types that its kind owns, each once. */
  objects?: {
    kind: string;
    owns: readonly { apiVersion: string; kind: string }[];
    /** The names of resources so far, by the object that each describes. */
    names: Map<string, string>;
  };
  /**
   * The parent of all resources that name none. In a stack that several objects share, it keeps their resources apart: names need
   * to be unique only below one parent.
   */
  parent?: Resource;
  /** What it prints by `console` is written here; the same for the call of a provider. */
  log?: Log | undefined;
}

/**
 * Pulumi's constructors force it to be implicit: `new KubernetesObject(name, inputs, options)` has no argument for what the
 * program runs in, and several programs run at the same time. `console.log` has none either.
 */
const running = new AsyncLocalStorage<RunningProgram>();

/** Runs a program in this, and in all else that the caller runs in. */
export function withProgram<T>(part: RunningProgram, program: () => T): T {
  return running.run({ ...running.getStore(), ...part }, program);
}

/** What the program that calls this runs in. */
export function runningProgram(): RunningProgram {
  return running.getStore() ?? {};
}

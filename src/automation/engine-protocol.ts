import type { EngineEvent } from "@pulumi/pulumi/automation/events";
import Type from "typebox";
import { Compile } from "typebox/compile";
import type { ProviderRequest } from "../../providers/host/session";

/** What the engine's process of this version says. It is raised with {@link PROTOCOL} of `tools/engine`. */
export const PROTOCOL = 5;

const usage = Type.Object({ memoryBytes: Type.Number(), descriptors: Type.Number(), goroutines: Type.Number() });
/** What a process has in use. */
export type EngineUsage = Type.Static<typeof usage>;

const request = Type.Unsafe<ProviderRequest>({ type: "object", required: ["urn"] });
const event = Type.Unsafe<EngineEvent>({ type: "object" });
/** What a process says. */
export const messages = {
  usage: Compile(usage),
  hello: Compile(Type.Object({ version: Type.String(), protocol: Type.Number() })),
  providerCall: Compile(Type.Object({ id: Type.Number(), request })),
  operation: Compile(Type.Object({ id: Type.Number() })),
  event: Compile(Type.Object({ id: Type.Number(), event })),
  log: Compile(Type.Object({ message: Type.String(), facts: Type.Object({}) })),
  stack: Compile(Type.Object({ id: Type.Number(), name: Type.String(), state: Type.Unknown() })),
};

/** The argument of a process that may run until then, by `performance.now()`; none for one that may run for ever. */
export function ttlArguments(until: number | undefined): string[] {
  return until === undefined ? [] : [`--ttl-ms=${wholeMs(until - performance.now())}`];
}

/** To the engine, no time left would mean for ever. */
export function wholeMs(ms: number): number {
  return Math.max(1, Math.ceil(ms));
}

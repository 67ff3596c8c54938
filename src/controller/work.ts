import type { Logger } from "pino";
import type { Fence } from "../../providers/fence";
import type { Log } from "../../providers/log";
import { engineWithin } from "../backend/owned-engine";
import type { Reconcile } from "./context";

/** A reconcile whose writes are refused, wherever they are made, when its fence has ended. */
export function withinFence(reconcile: Omit<Reconcile, "work">, fence: Fence): Reconcile {
  const { context, logger, object } = reconcile;
  const { apiVersion, kind, metadata } = object;
  const { namespace, name, uid } = metadata;
  const work = { fence, log: logOf(logger, "provider"), object: { apiVersion, kind, namespace, name, uid } };
  const client = context.client.within(fence);
  const [engine, writer] = [engineWithin(context.engine, work), context.writer.within(client)];
  return { ...reconcile, work, context: { ...context, client, engine, writer } };
}

/** The log of a kind's code. A field of its own that has the name of one of the line's is called `program.name`. */
export function logOf(logger: Logger, source: "program" | "provider"): Log {
  const write =
    (level: keyof Log) =>
    (message: string, fields: object = {}) => {
      const taken = new Set(["level", "time", "msg", "source", ...Object.keys(logger.bindings())]);
      const own = Object.entries(fields).map(([name, value]) => [taken.has(name) ? `${source}.${name}` : name, value]);
      logger[level]({ ...Object.fromEntries(own), source }, message);
    };
  return { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
}

import { format } from "node:util";
import type { Logger } from "pino";
import { runningProgram } from "../../providers/registration";

const LEVELS = { debug: "debug", log: "info", info: "info", warn: "warn", error: "error" } as const;

/** Makes what programs and libraries print by `console` lines of the log; a program's have the fields of its object. */
export function logConsoleLines(logger: Logger): void {
  for (const [method, level] of Object.entries(LEVELS)) {
    console[method as keyof typeof LEVELS] = (...words: unknown[]) => {
      const fields = { line: format(...words) };
      const { log } = runningProgram();
      if (log === undefined) logger[level](fields, "console");
      else log[level]("console", fields);
    };
  }
}

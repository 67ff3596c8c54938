import { format } from "node:util";
import type { Log } from "../../providers/log";
import { runningProgram } from "../../providers/registration";

const LEVELS = { debug: "debug", log: "info", info: "info", warn: "warn", error: "error" } as const;

/**
 * Makes what programs and libraries print by `console` lines of the log; a program's have the fields of its object.
 *
 * @param others told of lines that no program prints
 */
export function logConsoleLines(others: (level: keyof Log, fields: { line: string }) => void): void {
  for (const [method, level] of Object.entries(LEVELS)) {
    console[method as keyof typeof LEVELS] = (...words: unknown[]) => {
      const fields = { line: format(...words) };
      const { log } = runningProgram();
      if (log === undefined) others(level, fields);
      else log[level]("console", fields);
    };
  }
}

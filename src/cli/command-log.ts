import { errorMessageOf } from "../../providers/errors";
import { shortValue, visible } from "../text/plain-text";

/** The log of a command that is no operator: lines on standard error, for a person. */
export const commandLog = { warn: lineOf("warning"), error: lineOf("error") };

function lineOf(level: string) {
  return (fields: object, message: string): void => {
    const facts = Object.entries(fields).map(([name, value]) => `${name}=${textOf(value)}`);
    process.stderr.write(`${level}: ${[message, ...(facts.length > 0 ? [facts.join(" ")] : [])].join(": ")}\n`);
  };
}

function textOf(value: unknown): string {
  if (value instanceof Error) return visible(errorMessageOf(value));
  return typeof value === "string" ? visible(value) : shortValue(value);
}

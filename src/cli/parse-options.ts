import { type Command, InvalidArgumentError } from "commander";

export function wholeNumber(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError("it must be a whole number.");
  return Number(text);
}

export function seconds(text: string): number {
  if (!/^\d+(\.\d+)?$/.test(text) || Number(text) === 0)
    throw new InvalidArgumentError("it must be a number of seconds, such as 1.5.");
  return Number(text);
}

export function positive(text: string): number {
  const number = wholeNumber(text);
  if (number === 0) throw new InvalidArgumentError("it must be at least 1.");
  return number;
}

/** Parses an option such as `10` or `10%`. */
export function percent(text: string): number {
  const number = positive(text.replace(/ ?%$/, ""));
  if (number > 100) throw new InvalidArgumentError("it must be at most 100.");
  return number;
}

const UNITS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Parses an option such as `30m`, `8h` or `7d`. @returns ms */
export function duration(text: string): number {
  const [, number, unit = ""] = /^(\d+)([mhd])$/.exec(text) ?? [];
  const ms = Number(number) * (UNITS[unit] ?? 0);
  if (!(ms > 0)) throw new InvalidArgumentError("it must be a time such as 30m, 8h or 7d.");
  return ms;
}

export function httpsUrl(text: string): string {
  if (!/^https:\/\/[^/?#]+\/?$/.test(text) || !URL.canParse(text)) {
    throw new InvalidArgumentError(
      "it must be an https:// address without a path, such as https://kindstack.example.com.",
    );
  }
  return text;
}

/** What `parse` returns; ends the command as wrongly used when it throws. */
export function orWrongUsage<T>(command: Command, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    return command.error(`error: ${(error as Error).message}`);
  }
}

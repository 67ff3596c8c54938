import { type DestinationStream, destination, type Logger, pino, stdTimeFunctions } from "pino";
import pretty from "pino-pretty";
import { TerminalError } from "../../providers/errors";
import { withoutPasswords } from "../../providers/passwords";
import { visibleLines } from "../text/plain-text";

interface LoggerOptions {
  /** Whether a person reads along, which makes `pretty` the default format; by default whether stdout is a terminal. */
  terminal?: boolean;
  /** Where lines go; standard output by default. */
  stream?: DestinationStream;
}

const LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"];
/** Bytes of lines that could not be written yet; further ones are left out. */
const MAX_KEPT = 2 ** 20;
const SECRETS = ["password", "passphrase", "token", "authorization"];

/**
 * The program's logger: one JSON object a line, or coloured lines for people on a terminal.
 *
 * `KINDSTACK_LOG_LEVEL` is one of trace, debug, info (the default), warn, error, fatal and silent;
 * `KINDSTACK_LOG_FORMAT` is json or pretty. Messages are constant strings; what varies goes into fields.
 *
 * Credentials are never logged: no code hands a password, a passphrase, a token or a whole environment to the logger, and
 * those in URLs that errors quote are blanked. That fields of these names are blanked as well, at the top and one level
 * below, is a net for mistakes and nothing to rely on.
 */
export function createLogger({
  terminal = process.stdout.isTTY === true,
  stream = standardOutput(),
}: LoggerOptions = {}): Logger {
  const choose = (variable: string, fallback: string, allowed: string[]): string => {
    const value = process.env[variable] || fallback;
    if (allowed.includes(value)) return value;
    throw new TerminalError(
      "InvalidConfiguration",
      `${variable} is "${value}", but must be one of ${allowed.join(", ")}`,
    );
  };
  const level = choose("KINDSTACK_LOG_LEVEL", "info", LEVELS);
  const format = choose("KINDSTACK_LOG_FORMAT", terminal ? "pretty" : "json", ["json", "pretty"]);
  return pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: SECRETS.flatMap((key) => [key, `*.${key}`]), censor: "[redacted]" },
    },
    // In this thread: lines written by a worker thread are lost when the process ends in a hurry.
    format === "pretty"
      ? harmless(pretty({ destination: stream as NodeJS.WritableStream, sync: true, colorize: terminal }), asText)
      : harmless(stream, visibleLines),
  );
}

/** What it cannot take, as the file of a full disk cannot, follows with a later line. */
function standardOutput(): DestinationStream {
  const stream = destination({ dest: 1, sync: true, maxLength: MAX_KEPT });
  stream.on("error", () => undefined); // it would end the process
  return stream;
}

/**
 * Escapes control characters: fields quote objects and servers, and nothing in them may take effect on a terminal. The
 * value of a line of JSON stays the same.
 */
function harmless(stream: DestinationStream, change: (line: string) => string): DestinationStream {
  const mayQuotePassword = /:\/\/|=/;
  return { write: (line) => stream.write(change(mayQuotePassword.test(line) ? withoutQuoted(line) : line)) };
}

function withoutQuoted(line: string): string {
  const plain = (_: string, value: unknown) => (typeof value === "string" ? withoutPasswords(value) : value);
  return `${JSON.stringify(JSON.parse(line), plain)}\n`;
}

/** A line of JSON that is going to be read and printed: control characters are printed as their escapes. */
function asText(line: string): string {
  return visibleLines(line).replace(/\\(?:u[0-9a-f]{4}|.)/g, (sequence) =>
    /^\\[ubfr]/.test(sequence) ? `\\${sequence}` : sequence,
  );
}

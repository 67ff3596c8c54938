import type { DatabaseError } from "pg";
import { ClassifiedError, RetryableError, TerminalError } from "../errors";
import type { Reason } from "../reasons";
import { shortened } from "../shortened";

/** A condition's message is read by people; databases repeat the value that they refuse, however long. */
const MAX_MESSAGE_LENGTH = 1_000;

/**
 * What only a change of the object can correct: the values. Everything else may heal without the object being
 * touched, and without anything telling us: a table is created, a permission given, a row that is in the way deleted. By
 * SQLSTATE, or by the two characters of its class.
 */
const TERMINAL: Record<string, Reason> = {
  "22001": "ValueTooLong",
  "22003": "ValueOutOfRange",
  "22021": "InvalidText",
  "22P05": "InvalidText",
  "23502": "ValueMissing",
  "23514": "ValueRefused",
  "428C9": "ColumnGenerated",
  "42601": "WrongType", // in a value that has a syntax, such as that of tsquery: statements here are right
  "42804": "WrongType",
  "42846": "WrongType",
  "42883": "WrongType",
  "44000": "ValueRefused",
  "22": "WrongType",
};
const RETRYABLE: Record<string, Reason> = {
  "23503": "ForeignKeyViolation",
  "23505": "UniqueViolation",
  "23P01": "UniqueViolation",
  "08P01": "ConnectionFailed", // a pooler's own errors, such as a full queue
  "25006": "DatabaseReadOnly",
  "25P03": "ConnectionLost",
  "25P04": "ConnectionLost",
  "3D000": "DatabaseMissing",
  "40001": "TransactionConflict",
  "40P01": "TransactionConflict",
  "42501": "PermissionDenied",
  "42703": "ColumnMissing",
  "42P01": "TableMissing",
  "42P10": "KeyNotUnique",
  "3F000": "SchemaMissing",
  "53300": "TooManyConnections",
  "55P03": "LockTimeout",
  "57014": "StatementTimeout",
  "08": "ConnectionLost",
  "28": "AuthenticationFailed",
  "53": "DatabaseOverloaded",
  "57": "DatabaseUnavailable",
  "58": "DatabaseUnavailable",
};

/** Errors of sockets, by Node.js' codes. */
const CONNECTION_CODES: Record<string, Reason> = {
  ECONNREFUSED: "ConnectionRefused",
  ENOTFOUND: "HostUnknown",
  EAI_AGAIN: "HostUnknown",
  ETIMEDOUT: "ConnectionTimeout",
  ECONNRESET: "ConnectionLost",
  EPIPE: "ConnectionLost",
};

/** Node's codes for what is wrong with TLS or a certificate. */
const TLS_CODES = /SSL|TLS|CERT|^UNABLE_TO_|^HOSTNAME_MISMATCH$/;

/** PostgreSQL's SQLSTATE, five characters that name what went wrong, also of an error that was classified here. */
export function sqlStateOf(error: unknown): string | undefined {
  const { code, severity, cause } = (error ?? {}) as { code?: unknown; severity?: unknown; cause?: unknown };
  if (typeof code === "string" && severity !== undefined) return code;
  return cause === undefined ? undefined : sqlStateOf(cause);
}

/** Whether the database gave no answer: another statement would get none either. */
export function isUnanswered(error: unknown): boolean {
  return error instanceof RetryableError && error.cause !== undefined && sqlStateOf(error) === undefined;
}

/** What every statement depends on, see {@link ErrorDetails.dependency}. */
const DATABASE = "database";

/** Errors of a table, whatever row a statement is about, by their SQLSTATE. */
const TABLE_STATES = ["3F000", "42703", "42P01", "42P10"];

/** Whether an error that was classified here is about a table, and not about one of its rows. */
export function isAboutTable(error: unknown): boolean {
  const state = sqlStateOf(error);
  // A row that a policy refuses has the same SQLSTATE.
  if (state === "42501") return routineOf(error) === "aclcheck_error";
  return state !== undefined && TABLE_STATES.includes(state);
}

/** Whether an error that was classified here says that row security refuses a row. */
export function isRefusedByPolicy(error: unknown): error is ClassifiedError {
  return error instanceof ClassifiedError && sqlStateOf(error) === "42501" && !isAboutTable(error);
}

/** The function of PostgreSQL that raised an error. */
function routineOf(error: unknown): string | undefined {
  const { routine, cause } = (error ?? {}) as { routine?: string; cause?: unknown };
  return routine ?? (cause === undefined ? undefined : routineOf(cause));
}

/** Errors of the session or the server, by the class of their SQLSTATE: any other statement would get them as well. */
const SERVER_STATES = /^(08|25|28|3D|53|57P|58)/;

/** Whether an error that was classified here is about the statement and what it names; another statement may succeed. */
export function isRefusedStatement(error: unknown): error is ClassifiedError {
  const state = error instanceof ClassifiedError ? sqlStateOf(error) : undefined;
  return state !== undefined && !SERVER_STATES.test(state);
}

/**
 * The error of a statement with its class, a reason and the database's own words; anything that is neither the
 * database's nor the connection's doing is returned as it is.
 */
export function classifyStatementError(error: unknown): unknown {
  const state = sqlStateOf(error);
  if (state !== undefined) return classifyRefusal(state, error as DatabaseError);
  const { code, message = "" } = error as NodeJS.ErrnoException;
  if (MESSAGES.statementTimeout.test(message)) return retryable("StatementTimeout", error);
  const reason = CONNECTION_CODES[code ?? ""] ?? (MESSAGES.lost.test(message) ? "ConnectionLost" : undefined);
  return reason === undefined ? error : retryable(reason, error);
}

/** The error of an attempt to connect, likewise; whatever it is, another attempt may succeed. */
export function classifyConnectError(error: unknown): ClassifiedError {
  if (error instanceof ClassifiedError) return error;
  const state = sqlStateOf(error);
  if (state !== undefined) return classifyRefusal(state, error as DatabaseError);
  const { code = "", message } = error as NodeJS.ErrnoException;
  if (MESSAGES.noPassword.test(message)) {
    const problem = "the database asks for a password: set PSQL_PASSWORD, PSQL_PASSWORD_FILE or PGPASSFILE";
    return new RetryableError("AuthenticationFailed", problem, { cause: error });
  }
  const isTls = TLS_CODES.test(code) || MESSAGES.noTls.test(message);
  const other = MESSAGES.connectTimeout.test(message) ? "ConnectionTimeout" : isTls ? "TlsFailed" : "ConnectionFailed";
  return retryable(CONNECTION_CODES[code] ?? other, error);
}

function classifyRefusal(state: string, error: DatabaseError): ClassifiedError {
  const message = shortened([error.message, error.detail, error.hint].filter(Boolean).join("; "), MAX_MESSAGE_LENGTH);
  const stateClass = state.slice(0, 2);
  const terminal = TERMINAL[state] ?? TERMINAL[stateClass];
  if (terminal !== undefined) return new TerminalError(terminal, message, { cause: error });
  const reason = RETRYABLE[state] ?? RETRYABLE[stateClass] ?? "DatabaseError";
  const dependency = SERVER_STATES.test(state) ? DATABASE : undefined;
  return new RetryableError(reason, message, { cause: error, dependency });
}

function retryable(reason: Reason, error: unknown): RetryableError {
  const message = shortened(`the database cannot be reached: ${words(error)}`, MAX_MESSAGE_LENGTH);
  return new RetryableError(reason, message, { cause: error, dependency: DATABASE });
}

/** A host with several addresses fails with one error for each, and no message of its own. */
function words(error: unknown): string {
  const { message, errors, code } = error as AggregateError & NodeJS.ErrnoException;
  return message || errors?.map(({ message }: Error) => message).join("; ") || code || "no reason given";
}

/** What the driver of PostgreSQL tells in words alone; each is tested against the driver's own words (`messages.test.ts`). */
export const MESSAGES = {
  statementTimeout: /^Query read timeout$/,
  lost: /^Connection terminated|^Client (was closed|has encountered a connection error)/,
  noPassword: /client password must be a/,
  connectTimeout: /^timeout exceeded|connection timeout$/,
  noTls: /^The server does not support SSL/,
} as const satisfies Record<string, RegExp>;

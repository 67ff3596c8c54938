import { DatabaseError } from "pg";
import { describe, expect, it } from "vitest";
import { failureOf, RetryableError } from "../../../providers/errors";
import {
  classifyConnectError,
  classifyStatementError,
  isAboutTable,
  isUnanswered,
  sqlStateOf,
} from "../../../providers/postgres/errors";

function refusal(code: string, message = "no", detail?: string): DatabaseError {
  const error = new DatabaseError(message, 0, "error");
  return Object.assign(error, { code, severity: "ERROR", detail });
}

describe("classifyStatementError", () => {
  it.each([
    ["22001", "terminal", "ValueTooLong"],
    ["22003", "terminal", "ValueOutOfRange"],
    ["22P02", "terminal", "WrongType"],
    ["23502", "terminal", "ValueMissing"],
    ["23514", "terminal", "ValueRefused"],
    ["42804", "terminal", "WrongType"],
    ["428C9", "terminal", "ColumnGenerated"],
    ["44000", "terminal", "ValueRefused"],
    ["08006", "retryable", "ConnectionLost"],
    ["08P01", "retryable", "ConnectionFailed"],
    ["25006", "retryable", "DatabaseReadOnly"],
    ["25P03", "retryable", "ConnectionLost"],
    ["23503", "retryable", "ForeignKeyViolation"],
    ["23505", "retryable", "UniqueViolation"],
    ["28P01", "retryable", "AuthenticationFailed"],
    ["3D000", "retryable", "DatabaseMissing"],
    ["42501", "retryable", "PermissionDenied"],
    ["42703", "retryable", "ColumnMissing"],
    ["42P01", "retryable", "TableMissing"],
    ["42P10", "retryable", "KeyNotUnique"],
    ["53300", "retryable", "TooManyConnections"],
    ["53200", "retryable", "DatabaseOverloaded"],
    ["57014", "retryable", "StatementTimeout"],
    ["57P01", "retryable", "DatabaseUnavailable"],
    ["XX000", "retryable", "DatabaseError"],
  ])("takes SQLSTATE %s as %s, %s", (code, errorClass, reason) => {
    const error = classifyStatementError(refusal(code));
    expect(failureOf(error)).toMatchObject({ errorClass, reason });
    expect(sqlStateOf(error)).toBe(code);
    expect(isUnanswered(error)).toBe(false);
  });

  it("keeps the database's own words", () => {
    const { message } = classifyStatementError(refusal("23505", "duplicate key", "Key (name)=(a) exists.")) as Error;
    expect(message).toBe("duplicate key; Key (name)=(a) exists.");
  });

  it("shortens words that repeat a long value", () => {
    const { message } = classifyStatementError(refusal("22P02", "x".repeat(100_000))) as Error;
    expect(message).toHaveLength(1_000);
  });

  it("takes a connection that went away as retryable", () => {
    const reset = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
    for (const error of [new Error("Connection terminated unexpectedly"), reset]) {
      const classified = classifyStatementError(error);
      expect(failureOf(classified)).toMatchObject({ errorClass: "retryable", reason: "ConnectionLost" });
      expect(sqlStateOf(classified)).toBeUndefined();
      expect(isUnanswered(classified)).toBe(true);
    }
  });

  it("leaves what is neither the database's nor the connection's doing as it is", () => {
    const bug = new TypeError("x is not a function");
    expect(classifyStatementError(bug)).toBe(bug);
  });
});

describe("what an error is about", () => {
  const dependencyOf = (error: unknown) => (error as RetryableError).dependency;

  it.each(["08006", "28P01", "3D000", "53300", "57P01", "58030"])("is the database, of SQLSTATE %s", (code) => {
    expect(dependencyOf(classifyStatementError(refusal(code)))).toBe("database");
    expect(dependencyOf(classifyConnectError(refusal(code)))).toBe("database");
  });

  it.each([
    ["42P01", undefined, true],
    ["42703", undefined, true],
    ["42501", "aclcheck_error", true],
    ["42501", "ExecWithCheckOptions", false],
    ["23505", undefined, false],
  ])("is a table, whatever the row, of SQLSTATE %s raised by %s: %s", (code, routine, expected) => {
    const error = classifyStatementError(Object.assign(refusal(code), { routine }));
    expect(isAboutTable(error)).toBe(expected);
    expect(dependencyOf(error)).toBeUndefined();
  });
});

describe("classifyConnectError", () => {
  it.each([
    ["ECONNREFUSED", "connect ECONNREFUSED 127.0.0.1:1", "ConnectionRefused"],
    ["ENOTFOUND", "getaddrinfo ENOTFOUND nowhere", "HostUnknown"],
    ["ERR_TLS_CERT_ALTNAME_INVALID", "Hostname/IP does not match", "TlsFailed"],
    [undefined, "The server does not support SSL connections", "TlsFailed"],
    [undefined, "timeout exceeded when trying to connect", "ConnectionTimeout"],
    [undefined, "anything else", "ConnectionFailed"],
  ])("takes %s, %s as %s", (code, message, reason) => {
    const error = classifyConnectError(Object.assign(new Error(message), { code }));
    expect(error).toBeInstanceOf(RetryableError);
    expect(error.reason).toBe(reason);
    expect(error.message).toBe(`the database cannot be reached: ${message}`);
  });

  it("says how a password is given where there is none", () => {
    const error = classifyConnectError(new Error("SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string"));
    expect(error.reason).toBe("AuthenticationFailed");
    expect(error.message).toBe("the database asks for a password: set PSQL_PASSWORD, PSQL_PASSWORD_FILE or PGPASSFILE");
  });

  it("has words for a host with several addresses that all refuse", () => {
    const refused = (address: string) => new Error(`connect ECONNREFUSED ${address}`);
    const both = new AggregateError([refused("::1:5432"), refused("127.0.0.1:5432")]);
    const all = Object.assign(both, { code: "ECONNREFUSED" });
    expect(classifyConnectError(all).message).toBe(
      "the database cannot be reached: connect ECONNREFUSED ::1:5432; connect ECONNREFUSED 127.0.0.1:5432",
    );
  });
});

import fs from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { asError, failureOf, RetryableError, TerminalError } from "../../providers/errors";
import { defineReason, REASONS } from "../../providers/reasons";

describe("the class and the reason of an error", () => {
  it("are its own where it was classified, whatever caused it", async () => {
    const cause = await fs.writeFile("/dev/full", "text").catch((error: unknown) => error);
    const error = new TerminalError("Invalid", "too long", { cause });
    expect(failureOf(error)).toEqual({ errorClass: "terminal", reason: "Invalid", message: "too long" });
  });

  it.each(["/dev/full", "/nowhere/file", "/"])("say that a write to %s may heal", async (file) => {
    const error = await fs.writeFile(file, "text").catch((error: unknown) => error);
    expect(failureOf(error)).toMatchObject({ errorClass: "retryable", reason: "SystemError" });
  });

  it.each([new TypeError("x is undefined"), "text", undefined])("are a bug's for %s", (error) => {
    expect(failureOf(error)).toMatchObject({ errorClass: "bug", reason: "InternalError" });
  });
});

describe("a message", () => {
  const caBundle = /^connect: .*certificate.*; trust its CA: the key caBundle of the installation; [^;]*$/;
  it.each([
    "unable to verify the first certificate; if the root CA is installed locally, try running Node.js with --use-system-ca",
    "self-signed certificate in certificate chain",
    "unable to get local issuer certificate",
    "tls: failed to verify certificate: x509: certificate signed by unknown authority",
  ])("says once how to trust the CA of a certificate: %s", (words) => {
    const { message } = failureOf(new RetryableError("Unreachable", `connect: ${words}`));
    expect(message).toMatch(caBundle);
    expect(failureOf(new Error(message)).message).toBe(message);
  });

  it("has the words of its cause where it lacks them, as that of fetch does", () => {
    const cause = new Error("connect ECONNREFUSED 127.0.0.1:1");
    expect(failureOf(new TypeError("fetch failed", { cause })).message).toBe(`fetch failed: ${cause.message}`);
    expect(failureOf(new Error(`no: ${cause.message}`, { cause })).message).toBe(`no: ${cause.message}`);
    expect(failureOf(new TypeError("fetch failed", { cause: "text" })).message).toBe("fetch failed");
  });
});

describe("what was thrown", () => {
  it.each<[unknown, string]>([
    [null, "it threw null, which is no Error"],
    [undefined, "it threw undefined, which is no Error"],
    ["", "it threw '', which is no Error"],
    [{ code: 7 }, "it threw { code: 7 }, which is no Error"],
    ["too late", "too late"],
  ])("is an error that shows it, also where it is none: %s", (thrown, message) => {
    expect(asError(thrown)).toMatchObject({ message, cause: thrown });
  });

  it("is the error itself", () => {
    const error = new TypeError("x");
    expect(asError(error)).toBe(error);
  });
});

describe("a reason of one's own", () => {
  it("is the reason of an error", () => {
    const failed = defineReason("MigrationFailed");
    expect(failureOf(new TerminalError(failed, "step 3"))).toMatchObject({ reason: "MigrationFailed" });
  });

  it.each(["migration failed", "migrationFailed", "", "Migration_Failed", "M".repeat(129)])("is no %j", (reason) => {
    expect(() => defineReason(reason)).toThrow("must be in CamelCase");
  });

  it.each(REASONS)("is none of Kindstack's: not %s", (reason) => {
    expect(() => defineReason(reason)).toThrow("a reason of Kindstack's");
  });
});

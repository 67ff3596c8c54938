import { Writable } from "node:stream";
import { afterEach, describe, expect, it, vi } from "vitest";
import { TerminalError } from "../../providers/errors";
import { createLogger } from "../../src/telemetry/log";

afterEach(() => void vi.unstubAllEnvs());

/** A logger and what it has written. */
function logger(environment: Record<string, string> = {}, terminal = false) {
  const chunks: string[] = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      chunks.push(String(chunk));
      done();
    },
  });
  for (const name of ["KINDSTACK_LOG_LEVEL", "KINDSTACK_LOG_FORMAT"]) vi.stubEnv(name, environment[name]);
  return { log: createLogger({ terminal, stream }), text: () => chunks.join("") };
}

describe("createLogger", () => {
  it("writes one JSON object a line with a level by name and an ISO time", () => {
    const { log, text } = logger();
    log.info({ kind: "Tenant", generation: 2 }, "update finished");
    expect(JSON.parse(text())).toEqual({
      level: "info",
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      kind: "Tenant",
      generation: 2,
      msg: "update finished",
    });
  });

  it("writes readable lines on a terminal or when it is told to", () => {
    for (const { log, text } of [logger({}, true), logger({ KINDSTACK_LOG_FORMAT: "pretty" })]) {
      log.warn({ kind: "Tenant" }, "update failed");
      expect(text()).toContain("WARN");
      expect(text()).toContain("update failed");
      expect(() => JSON.parse(text())).toThrow();
    }
  });

  it("takes its level from KINDSTACK_LOG_LEVEL, info by default", () => {
    const usual = logger();
    usual.log.debug("hidden");
    expect(usual.text()).toBe("");
    const verbose = logger({ KINDSTACK_LOG_LEVEL: "debug" });
    verbose.log.debug("shown");
    expect(verbose.text()).toContain("shown");
  });

  it.each([{ KINDSTACK_LOG_LEVEL: "loud" }, { KINDSTACK_LOG_FORMAT: "xml" }])(
    "refuses %o and names what is allowed",
    (environment: Record<string, string>) => {
      expect(() => logger(environment)).toThrow(TerminalError);
      expect(() => logger(environment)).toThrow(/must be one of/);
    },
  );

  it("writes an error with its message, reason and stack", () => {
    const { log, text } = logger();
    log.error({ err: new TerminalError("TableMissing", "there is no table") }, "update failed");
    expect(JSON.parse(text()).err).toMatchObject({
      type: "TerminalError",
      message: "there is no table",
      reason: "TableMissing",
      stack: expect.stringContaining("log.test"),
    });
  });

  describe("writes what objects and servers say without effect on a terminal", () => {
    const hostile = "\u001b[2J\u001b]8;;http://x\u0007\u009b2J\u202egnp\r\b\u007f \\u0041 \\\\n";
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
    const HARMFUL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/;
    const write = (format: string) => {
      const { log, text } = logger({ KINDSTACK_LOG_FORMAT: format });
      log.warn({ name: hostile, nested: { [hostile]: [hostile] }, err: new Error(hostile) }, "update failed");
      return text();
    };

    it("as JSON, which means the same", () => {
      const text = write("json");
      expect(text).not.toMatch(HARMFUL);
      expect(JSON.parse(text)).toMatchObject({ name: hostile, nested: { [hostile]: [hostile] } });
    });

    it("as lines for people", () => {
      const text = write("pretty");
      expect(text).not.toMatch(HARMFUL);
      expect(text).toContain("\\u001b[2J");
      expect(text).toMatch(/\n +at /); // a stack keeps its lines
    });
  });

  it("shows no password in a URL or DSN, whatever quotes it and wherever", () => {
    for (const terminal of [false, true]) {
      const { log, text } = logger({}, terminal);
      const quoted = 'open "postgres://u:hunter2@db/state?sslpassword=hunter2": host=db password=\'hunter2 "\'';
      const err = Object.assign(new TypeError(`Invalid URL: ${quoted}`), { input: quoted, cause: new Error(quoted) });
      log.warn({ err, failures: [{ message: quoted }] }, "update failed");
      expect(text()).toContain("postgres://u:***@db/state?sslpassword=***");
      expect(text()).not.toContain("hunter2");
    }
  });

  it("blanks fields with the names of credentials", () => {
    const { log, text } = logger();
    log.info(
      { password: "hunter2", token: "hunter2", headers: { authorization: "hunter2" }, user: "ann" },
      "connected",
    );
    log.info({ connection: { password: "hunter2" }, passphrase: "hunter2" }, "connected");
    expect(text()).not.toContain("hunter2");
    expect(text()).toContain("[redacted]");
    expect(text()).toContain("ann");
  });
});

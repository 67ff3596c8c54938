import { Writable } from "node:stream";
import { describe, expect, it } from "vitest";
import { TerminalError } from "../../providers/errors";
import { createLogger } from "../../src/telemetry/log";

/** A logger and what it has written. */
function logger(environment: Record<string, string> = {}, terminal = false) {
  const chunks: string[] = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      chunks.push(String(chunk));
      done();
    },
  });
  return { log: createLogger({ environment, terminal, stream }), text: () => chunks.join("") };
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

  it("writes JSON on a terminal when it is told to", () => {
    const { log, text } = logger({ KINDSTACK_LOG_FORMAT: "json" }, true);
    log.info("started");
    expect(JSON.parse(text())).toMatchObject({ msg: "started" });
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
    log.error({ err: new TerminalError("NoTable", "there is no table") }, "update failed");
    expect(JSON.parse(text()).err).toMatchObject({
      type: "TerminalError",
      message: "there is no table",
      reason: "NoTable",
      stack: expect.stringContaining("log.test"),
    });
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

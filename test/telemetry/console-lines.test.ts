import { pino } from "pino";
import { afterEach, expect, it } from "vitest";
import { logConsoleLines } from "../../src/telemetry/console-lines";

const original = { ...console };
afterEach(() => void Object.assign(console, original));

it("logs what is printed, one JSON object a line, with its level", () => {
  const lines: object[] = [];
  const logger = pino({ base: null, timestamp: false }, { write: (line) => void lines.push(JSON.parse(line)) });
  logConsoleLines((level, fields) => logger[level](fields, "console"));
  console.log("%s has %d\nreplicas", "a", 3);
  console.error(new RangeError("too many").message);
  expect(lines).toEqual([
    { level: 30, line: "a has 3\nreplicas", msg: "console" },
    { level: 50, line: "too many", msg: "console" },
  ]);
});

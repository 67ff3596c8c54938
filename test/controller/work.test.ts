import { pino } from "pino";
import { expect, it } from "vitest";
import { logOf } from "../../src/controller/work";

it("the log of a program keeps apart its own fields and those of the line", () => {
  const lines: string[] = [];
  const logger = pino({ base: null, timestamp: () => ',"time":1' }, { write: (line) => void lines.push(line) });
  const log = logOf(logger.child({ kind: "notices.example.com", name: "a" }), "program");

  log.info("chose a plan", { name: "gold", plan: 1, level: 7, source: "x" });

  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({
    name: "a",
    plan: 1,
    level: 30,
    source: "program",
    "program.name": "gold",
    "program.level": 7,
    "program.source": "x",
  });
  expect(lines[0]?.match(/"name":/g)).toHaveLength(1); // a parser takes the last of two
});

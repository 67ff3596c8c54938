import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Target } from "../../src/packages/messages";
import { Suspicions, subjectOf } from "../../src/packages/suspicion";

const functionAt = (...path: (string | number)[]): Target => ({ type: "function", kind: "odds.example.com", path });
const [report, validate] = [functionAt("report"), functionAt("validate")];
const convert = functionAt("capabilities", "versions", 0, "toStored");
const object = (uid: string, generation: number) => ({ metadata: { uid, generation } });
const keyOf = (target: Target, args: unknown[]) => subjectOf(target, args, { context: undefined }).key;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

it("is of one function, one object and one generation of it", () => {
  const keys = [
    keyOf(report, [object("a", 1), []]),
    keyOf(validate, [object("a", 1)]),
    keyOf(report, [object("b", 1), []]),
    keyOf(report, [object("a", 2), []]),
    keyOf(convert, [{ spec: { size: 1 } }]),
    keyOf(convert, [{ spec: { size: 2 } }]),
  ];
  expect(new Set(keys).size).toBe(keys.length);
  expect(keyOf(report, [object("a", 1), [{}]])).toBe(keys[0]);
});

it("puts off what ends again and again, for longer each time, until it answers", () => {
  const suspicions = new Suspicions();
  const ending = { reason: "ProgramTimedOut", message: "it ran" } as const;
  const waits = [1, 2, 3].map(() => {
    const { notBefore } = suspicions.convict("key", ending, { apart: true });
    return notBefore - performance.now();
  });
  expect(waits[1]).toBeGreaterThan(waits[0] ?? 0);
  expect(waits[2]).toBeGreaterThan(waits[1] ?? 0);
  expect(suspicions.get("key")).toMatchObject({ apart: true, times: 3, error: { reason: "ProgramTimedOut" } });
  suspicions.acquit("key");
  expect(suspicions.isEmpty).toBe(true);
});

it("runs what took too long among the others, and what may have ended its process apart", () => {
  const suspicions = new Suspicions();
  suspicions.convict("slow", { reason: "ProgramTimedOut", message: "" }, { apart: false });
  expect(suspicions.get("slow")).toMatchObject({ apart: false });
  suspicions.suspect("slow");
  expect(suspicions.get("slow")).toMatchObject({ apart: true, times: 1 });
});

it("forgets in time", () => {
  const suspicions = new Suspicions();
  suspicions.suspect("old");
  vi.advanceTimersByTime(3_700_000);
  suspicions.suspect("new");
  expect(suspicions.get("old")).toBeUndefined();
  expect(suspicions.get("new")).toBeDefined();
});

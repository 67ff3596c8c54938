import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Budget } from "../../src/queue/budget";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

it("lets its capacity be spent at once, and then what comes in", () => {
  const budget = new Budget(100, 10);
  budget.spend(99);
  expect(budget.waitMs).toBe(0);
  budget.spend(21);
  expect(budget.waitMs).toBe(3_000);
  vi.advanceTimersByTime(3_000);
  expect(budget.waitMs).toBe(0);
  budget.spend(10);
  expect(budget.waitMs).toBeGreaterThan(0);
  vi.advanceTimersByTime(3_600_000);
  budget.spend(100);
  expect(budget.waitMs).toBeGreaterThan(0);
});

it("tells how long an amount takes, and keeps what is earned within its capacity", () => {
  const budget = new Budget(50, 2);
  budget.earn(10);
  budget.spend(50);
  expect(budget.msUntil(1)).toBe(500);
  budget.earn(0.5);
  expect(budget.msUntil(1)).toBe(250);
});

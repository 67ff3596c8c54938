import { expect, it } from "vitest";
import { Refreshes } from "../../src/controller/repairs";

it("spreads the first comparisons over the interval, and then keeps to it", () => {
  const first = Array.from({ length: 200 }, () => new Refreshes(1000).dueMs(60, 1000) ?? Number.NaN);
  expect(Math.min(...first)).toBeGreaterThanOrEqual(0);
  expect(Math.max(...first)).toBeLessThanOrEqual(60_000);
  expect(first.filter((ms) => ms < 30_000).length).toBeGreaterThan(50);
  const refreshes = new Refreshes(1000);
  const due = refreshes.dueMs(60, 1000);
  expect(refreshes.dueMs(60, 1500)).toBe((due ?? Number.NaN) - 500);
  refreshes.done(60, 2000);
  expect(refreshes.dueMs(60, 2000)).toBe(60_000);
});

it("is due at once where it is asked for, of a kind without an interval once", () => {
  const refreshes = new Refreshes(1000);
  expect(refreshes.dueMs(undefined, 1000)).toBeUndefined();
  refreshes.request(1000);
  expect(refreshes.dueMs(undefined, 1500)).toBe(-500);
  refreshes.done(undefined, 2000);
  expect(refreshes.dueMs(undefined, 2000)).toBeUndefined();
});

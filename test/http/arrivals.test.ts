import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Arrivals } from "../../src/http/arrivals";

let now = 0;
beforeEach(() => {
  now = 1_000;
  vi.spyOn(performance, "now").mockImplementation(() => now);
});
afterEach(() => void vi.restoreAllMocks());

/** How many of so many connections at once are taken. */
const taken = (arrivals: Arrivals, address: string, count: number) =>
  Array.from({ length: count }, () => arrivals.admit(address)).filter(Boolean).length;

it("an address opens a burst, and then so many a second", () => {
  const arrivals = new Arrivals(100);
  expect(taken(arrivals, "a", 1_000)).toBe(100);
  now += 100;
  expect(taken(arrivals, "a", 1_000)).toBe(10);
  now += 60_000;
  expect(taken(arrivals, "a", 1_000)).toBe(100);
});

it("addresses share what is taken in a second, and none is without", () => {
  const arrivals = new Arrivals(100);
  const addresses = Array.from({ length: 10 }, (_, index) => `10.0.0.${index}`);
  for (const address of addresses) expect(taken(arrivals, address, 1_000)).toBe(100);
  now += 1_000;
  for (const address of addresses) expect(taken(arrivals, address, 1_000)).toBe(10);
  expect(taken(arrivals, "a good one", 1)).toBe(1);
});

it("connections that show whose they are do not count", () => {
  const arrivals = new Arrivals(10);
  for (let opened = 0; opened < 1_000; opened++) {
    expect(arrivals.admit("a")).toBe(true);
    arrivals.excuse("a");
  }
});

it("connections that count more leave room for fewer", () => {
  const arrivals = new Arrivals(100);
  expect(arrivals.admit("a")).toBe(true);
  for (let count = 0; count < 50; count++) arrivals.charge("a");
  expect(taken(arrivals, "a", 1_000)).toBe(49);
  for (let count = 0; count < 1_000; count++) arrivals.charge("a");
  now += 100;
  expect(taken(arrivals, "a", 1_000)).toBe(10);
});

it("addresses that come no more are forgotten", () => {
  const arrivals = new Arrivals(10);
  for (let index = 0; index < 1_000; index++) arrivals.admit(`${index}`);
  now += 20_000;
  expect(taken(arrivals, "a", 10)).toBe(10);
  now += 1_000;
  expect(taken(arrivals, "a", 1_000)).toBe(10); // it has a second's share of all, no thousandth
});

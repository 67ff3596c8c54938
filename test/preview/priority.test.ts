import { expect, it, vi } from "vitest";
import { untilUpdatesRest } from "../../src/preview/preview";

it("a preview waits for updates, and goes on once they rest", async () => {
  const isBusy = vi.fn(() => isBusy.mock.calls.length < 4);
  await untilUpdatesRest(isBusy);
  expect(isBusy).toHaveBeenCalledTimes(4);
});

it("a preview goes on although there are always updates", async () => {
  const isBusy = vi.fn(() => true);
  await untilUpdatesRest(isBusy);
  expect(isBusy.mock.calls.length).toBeGreaterThan(10);
});

import { pino } from "pino";
import { afterEach, describe, expect, it } from "vitest";
import { eventually } from "../../src/testing/eventually";
import { type Polled, poll } from "../../src/tls/poll";

const options = { intervalMs: 5, logger: pino({ level: "silent" }) };
let polled: Polled<{ serial: number }>;
afterEach(() => polled.close());

describe("polled certificates", () => {
  it("are told to a listener at once and at each change, by value", async () => {
    let serial = 1;
    let readings = 0;
    polled = await poll(async () => {
      readings++;
      return { serial };
    }, options);
    const heard: number[] = [];
    await polled.follow(({ serial }) => void heard.push(serial));
    expect(heard).toEqual([1]);

    await eventually(() => expect(readings).toBeGreaterThan(3));
    expect(heard).toEqual([1]);
    serial = 2;
    await eventually(() => expect(heard).toEqual([1, 2]));
    expect(polled.current.serial).toBe(2);
  });

  it("stay as they were while they cannot be read", async () => {
    let failures = 0;
    polled = await poll(async (before) => {
      if (before === undefined) return { serial: 1 };
      failures++;
      throw new Error("unreadable");
    }, options);
    await eventually(() => expect(failures).toBeGreaterThan(1));
    expect(polled.current).toEqual({ serial: 1 });
  });

  it("are known only when every listener has taken them in, and are told again until then", async () => {
    let serial = 1;
    const known: [number | undefined, number][] = [];
    polled = await poll(async (before, knownMs) => {
      known.push([before?.serial, knownMs]);
      return { serial };
    }, options);
    let fails = true;
    let calls = 0;
    await polled.follow(({ serial }) => {
      calls++;
      if (serial === 2 && fails) throw new Error("out of reach");
    });
    await eventually(() => expect(known.at(-1)?.[1]).toBeGreaterThan(0));

    serial = 2;
    await eventually(() => expect(calls).toBeGreaterThan(3));
    expect(known.filter(([before]) => before === 2).every(([, knownMs]) => knownMs === 0)).toBe(true);
    fails = false;
    await eventually(() => expect(known.at(-1)?.[1]).toBeGreaterThan(0));
  });
});

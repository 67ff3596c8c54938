import fs from "node:fs/promises";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { fitPower, isReached, readResults, summary } from "../../bench/results";
import { useDirectory } from "../directories";
import { figure, results } from "./results-builder";

describe("a figure", () => {
  it("has reached no mark that is a ratio to nothing, and none when there is none", () => {
    expect(isReached(figure({ mark: { of: "ratio", at: "most", limit: 9 } }))).toBe(false);
    expect(isReached(figure())).toBeUndefined();
  });

  it("of several rounds is the median, with the least and the most", () => {
    expect(summary([3, 1, 2])).toEqual({ value: 2, range: [1, 3] });
    expect(summary([10, 9])).toEqual({ value: 9.5, range: [9, 10] });
  });
});

it("the fit goes through the middle of points that scatter", () => {
  // In logarithms to the base 10: (0, 0), (1, 2), (2, 1); the slope of least squares is 0.5.
  const { exponent, factor } = fitPower([
    { x: 1, y: 1 },
    { x: 10, y: 100 },
    { x: 100, y: 10 },
  ]);

  expect(exponent).toBeCloseTo(0.5, 10);
  expect(factor).toBeCloseTo(Math.sqrt(10), 10);
});

describe("a file of results", () => {
  const directory = useDirectory();

  it("that holds something else is refused with what is wrong", async () => {
    const file = path.join(directory, "other.json");
    await fs.writeFile(file, JSON.stringify({ ...results(), seconds: "long" }));

    await expect(readResults(file)).rejects.toThrow(`${file} holds no results: /seconds must be number`);
  });
});

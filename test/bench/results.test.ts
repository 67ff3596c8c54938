import fs from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fitPower, isReached, ratioOf, readResults, summary, writeResults } from "../../bench/results";
import { figure, results, section, sizePoint } from "./results-builder";

const ALTERNATIVE = { what: "the other", value: 4, measured: "here" } as const;

describe("a figure", () => {
  it("is so many times what it is compared to", () => {
    expect(ratioOf(figure({ value: 6, against: ALTERNATIVE }))).toBe(1.5);
    expect(ratioOf(figure())).toBeUndefined();
  });

  it.each([
    { mark: { of: "value", at: "most", limit: 6 }, reached: true },
    { mark: { of: "value", at: "most", limit: 5.9 }, reached: false },
    { mark: { of: "value", at: "least", limit: 6 }, reached: true },
    { mark: { of: "value", at: "least", limit: 6.1 }, reached: false },
    { mark: { of: "ratio", at: "most", limit: 1.5 }, reached: true },
    { mark: { of: "ratio", at: "most", limit: 1.4 }, reached: false },
  ] as const)("of 6, against 4, has reached $mark.of at $mark.at $mark.limit: $reached", ({ mark, reached }) => {
    expect(isReached(figure({ value: 6, against: ALTERNATIVE, mark }))).toBe(reached);
  });

  it("has reached no mark that is a ratio to nothing, and none when there is none", () => {
    expect(isReached(figure({ mark: { of: "ratio", at: "most", limit: 9 } }))).toBe(false);
    expect(isReached(figure())).toBeUndefined();
  });

  it("of several rounds is the median, with the least and the most", () => {
    expect(summary([3, 1, 2])).toEqual({ value: 2, range: [1, 3] });
    expect(summary([10, 9])).toEqual({ value: 9.5, range: [9, 10] });
  });
});

it("a cost in proportion to the size has the exponent 1, and one that grows with its square 2", () => {
  const sizes = [10, 100, 1_000, 5_000];

  const linear = fitPower(sizes.map((x) => ({ x, y: 0.01 * x })));
  const square = fitPower(sizes.map((x) => ({ x, y: 3 * x ** 2 })));

  expect(linear.exponent).toBeCloseTo(1, 10);
  expect(linear.factor).toBeCloseTo(0.01, 10);
  expect(square.exponent).toBeCloseTo(2, 10);
  expect(square.factor).toBeCloseTo(3, 8);
});

it("the fit goes through the middle of points that scatter", () => {
  // In logarithms to the base 10: (0, 0), (1, 2), (2, 1); the slope of least squares is 0.5.
  const { exponent } = fitPower([
    { x: 1, y: 1 },
    { x: 10, y: 100 },
    { x: 100, y: 10 },
  ]);

  expect(exponent).toBeCloseTo(0.5, 10);
});

describe("a file of results", () => {
  let directory = "";
  beforeAll(async () => {
    directory = await fs.mkdtemp(path.join(os.tmpdir(), "kindstack-test-"));
  });
  afterAll(() => fs.rm(directory, { recursive: true }));

  it("is read as it was written", async () => {
    const written = results(section(), section({ id: "size", sizes: [sizePoint(10, 1)] }));
    const file = path.join(directory, "results.json");

    await writeResults(file, written);

    expect(await readResults(file)).toEqual(written);
  });

  it("that holds something else is refused with what is wrong", async () => {
    const file = path.join(directory, "other.json");
    await fs.writeFile(file, JSON.stringify({ ...results(), seconds: "long" }));

    await expect(readResults(file)).rejects.toThrow(`${file} holds no results: /seconds must be number`);
  });
});

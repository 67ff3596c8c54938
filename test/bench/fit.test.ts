import { expect, it } from "vitest";
import { fitPower } from "../../bench/fit";

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

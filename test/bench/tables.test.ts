import { expect, it } from "vitest";
import { cellsOf, renderResults } from "../../bench/tables";
import { figure, results, section } from "./results-builder";

it("a figure is shown with what it is compared to, its mark and whether that is reached", () => {
  const compared = figure({
    what: "created in one namespace",
    value: 9.1234,
    range: [8.9, 12.34],
    against: { what: "one bare update", value: 8.5 },
    mark: { of: "ratio", at: "most", limit: 1.5 },
  });

  expect(cellsOf(compared)).toEqual([
    "created in one namespace",
    "9.12 s (8.90–12.3)",
    "1.07 × 8.50 s, one bare update",
    "≤ 1.5 ×",
    "yes",
  ]);
});

it("what is not reached stands out", () => {
  const cells = cellsOf(
    figure({
      value: 8,
      against: { what: "an operator in Go", value: 6.8, range: [5.9, 6.8] },
      mark: { of: "ratio", at: "most", limit: 1 },
    }),
  );

  expect(cells.slice(2)).toEqual(["1.18 × 6.80 s (5.90–6.80), an operator in Go", "≤ 1 ×", "NO"]);
});

it("quantities have their units, and digits that mean something", () => {
  const cells = [
    figure({ value: 123.4, unit: "/s", mark: { of: "value", at: "least", limit: 100 } }),
    figure({ value: 3_000, unit: "count" }),
    figure({ value: 0.456, unit: "%" }),
    figure({ value: 1.0449, unit: "exponent" }),
    figure({ value: 12.345, unit: "MiB" }),
  ].map((one) => cellsOf(one).slice(1, 4));

  expect(cells).toEqual([
    ["123/s", "", "≥ 100/s"],
    ["3,000", "", ""],
    ["0.46 %", "", ""],
    ["1.04", "", ""],
    ["12.3 MiB", "", ""],
  ]);
});

it("results are a table for each section, with its notes", () => {
  const text = renderResults(results(section({ title: "One" }), section({ title: "Two", notes: ["In turns."] })));

  expect(text).toMatch(/^One\n\nWHAT {5}MEASURED .*\ncreated {2}6\.00 s\n {2}As fast as can be\.\n\nTwo\n/);
  expect(text).toContain("In turns.");
});

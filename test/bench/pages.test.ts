import fs from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { generatedParts, PLOT_FILE, RESULTS_FILE, withPart } from "../../bench/pages";
import { renderPlot } from "../../bench/plot";
import { readResults } from "../../bench/results";
import { figure, results, section, sizePoint } from "./results-builder";

const PAGE = "Before.\n<!-- generated: plan -->\nold\n<!-- end of what is generated -->\nAfter.\n";

it("a generated part of a page is replaced, and nothing else of the page", () => {
  expect(withPart(PAGE, "plan", "new | $& $1")).toBe(
    "Before.\n<!-- generated: plan -->\nnew | $& $1\n<!-- end of what is generated -->\nAfter.\n",
  );
});

it("a page without that part is refused", () => {
  expect(() => withPart(PAGE, "results", "new")).toThrow("the page has no generated part results");
});

it("the plan for a million objects follows from the two largest sizes", () => {
  const sizes = [sizePoint(10, 5), sizePoint(1_000, 10), sizePoint(5_000, 36)];
  const plan = generatedParts(results(section({ sizes }))).find(({ part }) => part === "plan")?.text ?? "";

  expect(plan.split("\n").slice(2)).toEqual([
    "| creation, one replica | 7.20 ms | 2.00 h |",
    "| CPU time of operator and engine | 3.60 ms | 1.00 h of one core |",
    "| requests to the API server | 3.00 | 3,000,000 |",
    "| memory of each replica | 102 KiB | 97.8 GiB, including 100 MiB without any |",
    "| state | 4.00 KiB | 3.81 GiB |",
    "| object in etcd | 2.00 KiB | 1.91 GiB |",
  ]);
});

it("the results are the figures with a mark, each by its own name", () => {
  const mark = { of: "ratio", at: "most", limit: 2 } as const;
  const figures = [
    figure({ what: "changed" }),
    figure({ what: "the same", against: { what: "one bare update", value: 5 }, mark }),
  ];
  const text = generatedParts(results(section({ figures }))).find(({ part }) => part === "results")?.text ?? "";

  expect(text.split("\n").filter((line) => line.startsWith("| `"))).toEqual([
    "| `burst` | changed | 6.00 s | 1.20 × 5.00 s, one bare update | ≤ 2 × | yes |",
  ]);
});

it("the pages show the figures of docs/benchmarks.json, none of them copied by hand", async () => {
  const measured = await readResults(RESULTS_FILE);

  expect(fs.readFileSync(PLOT_FILE, "utf8")).toBe(renderPlot(measured));
  for (const { page, part, text } of generatedParts(measured)) {
    const shown = fs.readFileSync(path.join(path.dirname(RESULTS_FILE), page), "utf8");
    expect(withPart(shown, part, text), `${part} of ${page}`).toBe(shown);
  }
});

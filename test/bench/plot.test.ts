import { expect, it } from "vitest";
import { renderPlot } from "../../bench/plot";
import { figure, results, section, sizePoint } from "./results-builder";

const AGAINST = { what: "one bare update", value: 4, measured: "here" } as const;

it("the plot is well-formed XML, whatever stands in titles and names", () => {
  const hostile = "a < b & c > d \"e\" 'f' </text>";
  const svg = renderPlot(
    results(
      section({ title: hostile, figures: [figure({ what: hostile, against: { ...AGAINST, what: hostile } })] }),
      section({ id: "size", sizes: [sizePoint(10, 1), sizePoint(100, 5)], figures: [] }),
    ),
  );

  expect(unclosed(svg)).toEqual([]);
  expect(svg).toContain("a &lt; b &amp; c &gt; d \"e\" 'f' &lt;/text&gt;");
  expect(svg).not.toContain("NaN");
});

it("the plot has a point for each size and measure, and a line in proportion to the largest", () => {
  const svg = renderPlot(results(section({ sizes: [sizePoint(10, 1), sizePoint(100, 5), sizePoint(1_000, 40)] })));

  expect(svg.match(/<circle /g)).toHaveLength(6);
  expect(svg.match(/<line class="linear"/g)).toHaveLength(1);
  expect(svg).toContain(">1,000</text>");
});

it("a size in proportion lies on the line of proportion", () => {
  const svg = renderPlot(results(section({ sizes: [sizePoint(10, 1), sizePoint(100, 10)] })));
  const [, x, y] = /<line class="linear" x1="([\d.]+)" y1="([\d.]+)"/.exec(svg) ?? [];

  expect(svg).toContain(`<circle class="one" cx="${x}" cy="${y}"`);
});

it("the plot has a bar for each time that is compared, with its mark; those that miss it stand out", () => {
  const mark = { of: "ratio", at: "most", limit: 1.5 } as const;
  const svg = renderPlot(
    results(
      section({
        figures: [
          figure({ value: 5, against: AGAINST, mark }),
          figure({ value: 8, against: AGAINST, mark }),
          figure({ value: 400, against: AGAINST }),
          figure({ value: 9 }),
          figure({ value: 9, unit: "count", against: AGAINST }),
        ],
      }),
    ),
  );

  expect(svg.match(/<rect class="bar"/g)).toHaveLength(2);
  expect(svg.match(/<rect class="missed"/g)).toHaveLength(1);
  expect(svg.match(/<line class="mark"/g)).toHaveLength(2);
  expect(svg).toContain("100.00 × one bare update");
});

it("the plot can be read on light and on dark", () => {
  const style = /<style>([\s\S]*)<\/style>/.exec(renderPlot(results(section())))?.[1] ?? "";
  const [light = "", dark = ""] = style.split("@media (prefers-color-scheme: dark)");
  const paperAndInk = (text: string) =>
    [/\.paper \{ fill: (#\w+)/, /text \{ fill: (#\w+)/].map((of) => of.exec(text)?.[1]);

  expect(paperAndInk(light)).toEqual(["#fff", "#1f2328"]);
  expect(paperAndInk(dark)).toEqual(["#0d1117", "#e6edf3"]);
});

/** What is not well-formed: elements that are not closed, or not by themselves; stray characters of markup. */
function unclosed(xml: string): string[] {
  const open: string[] = [];
  const rest = xml.replace(
    /<(\/?)([a-z]+)((?: [\w:-]+="[^"<&]*")*)\s*(\/?)>/gi,
    (_tag, closing, name, _attributes, alone) => {
      if (closing !== "") return open.pop() === name ? "" : `<stray ${name}>`;
      if (alone === "") open.push(name);
      return "";
    },
  );
  const stray = rest.replaceAll(/&(lt|gt|amp);/g, "").match(/[<>&]/g) ?? [];
  return [...open, ...stray];
}

import { type Figure, fitPower, isReached, type Results, ratioOf, type SizePoint } from "./results";

/*
 * The figures as one SVG: what objects cost by their number, and times beside those of the alternatives. Colours follow
 * the reader's preference for light or dark. Drawn by hand: of a library for plots, scales of two kinds would be used,
 * which are one line each.
 */

const WIDTH = 860;
const CHART = { left: 70, top: 50, width: 600, height: 260 };
const BARS = { left: 330, width: 240, row: 21, longest: 3 };
const LIGHT = {
  paper: "#fff",
  ink: "#1f2328",
  faint: "#59636e",
  grid: "#d1d9e0",
  one: "#0969da",
  two: "#9a6700",
  missed: "#cf222e",
};
const DARK = {
  paper: "#0d1117",
  ink: "#e6edf3",
  faint: "#9198a1",
  grid: "#3d444d",
  one: "#4493f8",
  two: "#d29922",
  missed: "#f85149",
};
const SHAPES = `
  text { font: 12px system-ui, sans-serif } .title { font-size: 15px; font-weight: 600 } .group { font-weight: 600 }
  .end { text-anchor: end } .middle { text-anchor: middle } .linear { stroke-dasharray: 5 4 }
  polyline { fill: none; stroke-width: 2 } .mark { stroke-width: 2 }`;
const STYLE = `${SHAPES}\n  ${coloured(LIGHT)}\n  @media (prefers-color-scheme: dark) { ${coloured(DARK)} }`;

/** @param results of a run with the bench of sizes */
export function renderPlot({ sections }: Results): string {
  const sizes = sections.flatMap(({ sizes = [] }) => sizes);
  const chart = sizes.length < 2 ? [] : sizeChart(sizes);
  const barsTop = sizes.length < 2 ? 30 : CHART.top + CHART.height + 85;
  const bars = barChart(sections, barsTop);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${bars.bottom + 20}" width="${WIDTH}" role="img">`,
    "<title>What objects cost by their number, and times beside those of the alternatives</title>",
    `<style>${STYLE}</style>`,
    `<rect width="${WIDTH}" height="${bars.bottom + 20}" rx="8" class="paper"/>`,
    ...chart,
    ...bars.lines,
    "</svg>\n",
  ].join("\n");
}

function sizeChart(sizes: readonly SizePoint[]): string[] {
  const { left, top, width, height } = CHART;
  const xs = decadesOf(sizes.map(({ objects }) => objects));
  const ys = decadesOf(sizes.flatMap(({ seconds, cpuSeconds }) => [seconds, cpuSeconds]));
  const x = logScale(xs, left, left + width);
  const y = logScale(ys, top + height, top);
  const last = sizes.at(-1) as SizePoint;
  const smallest = xs[0] as number;
  const atSmallest = Math.max((last.seconds / last.objects) * smallest, ys[0] as number);
  const startsAt = (atSmallest / last.seconds) * last.objects;
  const series = (name: "one" | "two", label: string, of: "seconds" | "cpuSeconds", below: boolean) => {
    const { exponent } = fitPower(sizes.map((size) => ({ x: size.objects, y: size[of] })));
    return [
      `<polyline class="${name}" points="${sizes.map((size) => `${x(size.objects)},${y(size[of])}`).join(" ")}"/>`,
      ...sizes.map((size) => `<circle class="${name}" cx="${x(size.objects)}" cy="${y(size[of])}" r="4"/>`),
      text(x(last.objects) + 12, y(last[of]) + (below ? 14 : -4), `${label}: n^${exponent.toFixed(2)}`),
    ];
  };
  const isTimeAbove = last.seconds >= last.cpuSeconds;
  return [
    text(20, 28, "Seconds until all of n PostgresWriters are Ready, and of CPU", "title"),
    ...xs.flatMap((tick) => [
      `<line class="grid" x1="${x(tick)}" y1="${top}" x2="${x(tick)}" y2="${top + height}"/>`,
      text(x(tick), top + height + 18, tick.toLocaleString("en"), "middle faint"),
    ]),
    ...ys.flatMap((tick) => [
      `<line class="grid" x1="${left}" y1="${y(tick)}" x2="${left + width}" y2="${y(tick)}"/>`,
      text(left - 8, y(tick) + 4, `${tick.toLocaleString("en")} s`, "end faint"),
    ]),
    `<line class="linear" x1="${x(startsAt)}" y1="${y(atSmallest)}" x2="${x(last.objects)}" y2="${y(last.seconds)}"/>`,
    text(left + width, top + height + 36, "objects; dashed: in proportion to the last", "end faint"),
    ...series("one", "time", "seconds", !isTimeAbove),
    ...series("two", "CPU time", "cpuSeconds", isTimeAbove),
  ];
}

function barChart(sections: Results["sections"], top: number): { lines: string[]; bottom: number } {
  const { left, width, row, longest } = BARS;
  const x = (ratio: number) => left + (Math.min(ratio, longest) / longest) * width;
  const lines = [
    text(
      20,
      top,
      `Times, as multiples of the alternative's (shorter is better; | is the mark; bars end at ${longest} ×)`,
      "title",
    ),
  ];
  let bottom = top + 8;
  for (const { title, figures } of sections) {
    const bars = figures.filter((figure) => figure.unit === "s" && figure.against !== undefined);
    if (bars.length === 0) continue;
    bottom += row + 6;
    lines.push(text(20, bottom, title, "group"));
    for (const figure of bars) {
      bottom += row;
      lines.push(...barOf(figure, x, bottom));
    }
  }
  const same = `<line class="grid" x1="${x(1)}" y1="${top + 14}" x2="${x(1)}" y2="${bottom + 6}"/>`;
  const label = text(x(1), bottom + 20, "as long as the alternative", "middle faint");
  return { lines: [same, ...lines, label], bottom: bottom + 20 };
}

function barOf(figure: Figure, x: (ratio: number) => number, y: number): string[] {
  const ratio = ratioOf(figure) ?? Number.NaN;
  const { mark, against } = figure;
  const kind = isReached(figure) === false ? "missed" : "bar";
  const limit = mark?.of === "ratio" ? [mark.limit] : [];
  return [
    text(x(0) - 10, y, figure.what, "end"),
    `<rect class="${kind}" x="${x(0)}" y="${y - 10}" width="${x(ratio) - x(0)}" height="12"/>`,
    ...limit.map((at) => `<line class="mark" x1="${x(at)}" y1="${y - 12}" x2="${x(at)}" y2="${y + 4}"/>`),
    text(Math.max(x(ratio), ...limit.map(x)) + 8, y, `${ratio.toFixed(2)} × ${against?.what}`, "faint"),
  ];
}

/** The powers of ten from the one below all values to the one above them. */
function decadesOf(values: readonly number[]): number[] {
  const first = Math.floor(Math.log10(Math.min(...values)));
  const last = Math.ceil(Math.log10(Math.max(...values)));
  return Array.from({ length: last - first + 1 }, (_, index) => 10 ** (first + index));
}

function logScale(decades: readonly number[], from: number, to: number): (value: number) => number {
  const [first, last] = [Math.log10(decades[0] ?? 1), Math.log10(decades.at(-1) ?? 10)];
  return (value) => round(from + ((Math.log10(value) - first) / (last - first)) * (to - from));
}

function text(x: number, y: number, content: string, kind = ""): string {
  const escaped = content.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return `<text x="${round(x)}" y="${round(y)}"${kind && ` class="${kind}"`}>${escaped}</text>`;
}

/** Without variables, which not every viewer of SVG knows. */
function coloured({ paper, ink, faint, grid, one, two, missed }: typeof LIGHT): string {
  return `.paper { fill: ${paper} } text { fill: ${ink} } .faint { fill: ${faint} } .grid { stroke: ${grid} } \
.linear { stroke: ${faint} } .mark { stroke: ${ink} } polyline.one { stroke: ${one} } polyline.two { stroke: ${two} } \
circle.one, .bar { fill: ${one} } circle.two { fill: ${two} } .missed { fill: ${missed} }`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

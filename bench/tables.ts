import { renderTable } from "../src/text/table";
import { type Figure, isReached, type Results, ratioOf, type Section } from "./results";

export const COLUMNS = ["what", "measured", "compared to", "to reach", "reached"] as const;

/** A figure as the cells of {@link COLUMNS}. */
export function cellsOf(figure: Figure): string[] {
  const { against, mark, unit } = figure;
  const compared =
    against === undefined
      ? ""
      : `${(ratioOf(figure) ?? Number.NaN).toFixed(2)} × ${quantity({ ...against, unit })}, ${against.what}`;
  const limit =
    mark === undefined
      ? ""
      : `${mark.at === "most" ? "≤" : "≥"} ${mark.of === "ratio" ? `${mark.limit} ×` : withUnit(mark.limit, unit, true)}`;
  const reached = { true: "yes", false: "NO", undefined: "" }[`${isReached(figure)}`];
  return [figure.what, quantity(figure), compared, limit, reached];
}

/** All sections as tables for a terminal. */
export function renderResults({ sections }: Results): string {
  return sections.map(renderSection).join("\n\n");
}

function renderSection({ title, figures, notes }: Section): string {
  const table = renderTable(COLUMNS, figures.map(cellsOf));
  return [title, "", table, ...notes.map((note) => `  ${note}`)].join("\n");
}

function quantity({ value, range, unit }: Pick<Figure, "value" | "range" | "unit">): string {
  const spread = range === undefined ? "" : ` (${range.map((end) => plain(end, unit)).join("–")})`;
  return `${withUnit(value, unit)}${spread}`;
}

function withUnit(value: number, unit: Figure["unit"], exact = false): string {
  const number = exact ? String(value) : plain(value, unit);
  if (unit === "count" || unit === "exponent") return number;
  return `${number}${unit === "/s" ? "/s" : ` ${unit}`}`;
}

/** With so many digits as mean something, and thousands apart. */
export function plain(value: number, unit: Figure["unit"]): string {
  if (unit === "count" && Number.isInteger(value)) return value.toLocaleString("en");
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

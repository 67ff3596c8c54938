import { coloured } from "./colour";
import { visible } from "./plain-text";

/**
 * Columns of equal width, as kubectl prints them: names in capitals, two spaces apart. No cell has any effect on a terminal.
 */
export function renderTable(columns: readonly string[], rows: readonly (readonly unknown[])[]): string {
  const cells = [
    columns.map((column) => column.toUpperCase()),
    ...rows.map((row) => row.map((cell) => visible(String(cell)))),
  ];
  const widths = columns.map((_, index) => Math.max(...cells.map((row) => (row[index] ?? "").length)));
  return cells
    .map((row) =>
      row
        .map((cell, index) => coloured(cell, index < row.length - 1 ? cell.padEnd(widths[index] ?? 0) : cell))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

import fs from "node:fs/promises";
import path from "node:path";
import { packageRoot } from "../src/package";
import { renderPlot } from "./plot";
import { type Results, type Section, type SizePoint, writeResults } from "./results";
import { COLUMNS, cellsOf, plain } from "./tables";

const DOCS = path.join(packageRoot, "docs");
export const RESULTS_FILE = path.join(DOCS, "benchmarks.json");
export const PLOT_FILE = path.join(DOCS, "benchmarks.svg");

/** The parts of pages that are made from results: the page's file name, the part's name in it, what it says. */
export function generatedParts(results: Results): { page: string; part: string; text: string }[] {
  const sizes = results.sections.flatMap(({ sizes = [] }) => sizes);
  return [
    { page: "benchmarks.md", part: "results", text: resultsPart(results) },
    { page: "scale.md", part: "plan", text: planPart(sizes) },
  ];
}

/** Writes the results beside the pages, the plot, and the parts of the pages that are made from them. */
export async function writePages(results: Results): Promise<void> {
  for (const { page, part, text } of generatedParts(results)) {
    const file = path.join(DOCS, page);
    await fs.writeFile(file, withPart(await fs.readFile(file, "utf8"), part, text));
  }
  await fs.writeFile(PLOT_FILE, renderPlot(results));
  await writeResults(RESULTS_FILE, results);
}

/** A page with one of its generated parts replaced: what stands between its two comments. @throws Error if it has none */
export function withPart(page: string, part: string, text: string): string {
  const [begin, end] = [`<!-- generated: ${part} -->\n`, "\n<!-- end of what is generated -->"];
  const from = page.indexOf(begin);
  const to = page.indexOf(end, from);
  if (from === -1 || to === -1) throw new Error(`the page has no generated part ${part}`);
  return page.slice(0, from + begin.length) + text + page.slice(to);
}

function resultsPart({ measuredAt, seconds, machine, versions, sections }: Results): string {
  const { cores, memoryGiB, cpu, system } = machine;
  const software = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  const intro =
    `Measured on ${measuredAt.slice(0, 10)} in one run of ${Math.round(seconds / 60)} minutes: ${cores} cores (${cpu}), ` +
    `${memoryGiB} GiB, ${system}; ${software.join(", ")}.`;
  const plot = "![What objects cost by their number, and times beside those of the alternatives](benchmarks.svg)";
  const marks = markdownTable(["bench", ...COLUMNS], sections.flatMap(marksOf));
  return [intro, plot, marks].join("\n\n");
}

/** The rows of the figures that have a mark to reach. */
function marksOf({ id, figures }: Section): string[][] {
  return figures.flatMap((figure, index) => {
    if (figure.mark === undefined) return [];
    const named = figures.slice(0, index + 1).findLast(({ what }) => what !== "the same") ?? figure;
    return [[`\`${id}\``, ...cellsOf({ ...figure, what: named.what })]];
  });
}

const PLANNED = 1_000_000;

/** What a million objects take, by what the largest measured number took. */
function planPart(sizes: readonly SizePoint[]): string {
  const [before, last] = [sizes.at(-2), sizes.at(-1)];
  if (before === undefined || last === undefined) return "Not measured.";
  const each = (total: number) => total / last.objects;
  const memory = (last.residentMiB - before.residentMiB) / (last.objects - before.objects);
  const base = last.residentMiB - memory * last.objects;
  const hours = (seconds: number) => `${plain(seconds / 3600, "s")} h`;
  const gibibytes = (mebibytes: number) => `${plain(mebibytes / 1024, "MiB")} GiB`;
  const planned = PLANNED.toLocaleString("en");
  return markdownTable(
    ["", `each, at ${last.objects.toLocaleString("en")}`, planned],
    [
      ["creation, one replica", `${plain(each(last.seconds) * 1000, "ms")} ms`, hours(each(last.seconds) * PLANNED)],
      [
        "CPU time of operator and engine",
        `${plain(each(last.cpuSeconds) * 1000, "ms")} ms`,
        `${hours(each(last.cpuSeconds) * PLANNED)} of one core`,
      ],
      ["requests to the API server", plain(each(last.requests), "s"), plain(each(last.requests) * PLANNED, "count")],
      [
        "memory of each replica",
        `${plain(memory * 1024, "s")} KiB`,
        `${gibibytes(base + memory * PLANNED)}, including ${plain(base, "MiB")} MiB without any`,
      ],
      ["state", bytes(each(last.stateBytes)), bytes(each(last.stateBytes) * PLANNED)],
      ["object in etcd", bytes(each(last.objectBytes)), bytes(each(last.objectBytes) * PLANNED)],
    ],
  );
}

function bytes(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB"];
  const step = Math.max(0, Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, value)) / 10)));
  return `${plain(value / 1024 ** step, "MiB")} ${units[step]}`;
}

function markdownTable(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(columns), `|${columns.map(() => "---").join("|")}|`, ...rows.map(line)].join("\n");
}

import { writeFile } from "node:fs/promises";
import { Option } from "commander";
import { stringify } from "yaml";
import { errorMessageOf, TerminalError } from "../../providers/errors";
import type { Report } from "../preview/report";
import { safeJson } from "../text/plain-text";
import { renderMarkdown } from "./render-markdown";
import { renderText } from "./render-text";

/** Writes a file that the command line names. What is in such files is for its owner alone. */
export async function writeOutput(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text, { mode: 0o600 });
  } catch (error) {
    throw new TerminalError("Misconfigured", `${file} cannot be written: ${errorMessageOf(error)}`);
  }
}

export type OutputFormat = "text" | "json";

/** `-o, --output`, the same for every command. */
export function outputOption(): Option {
  return new Option("-o, --output <format>", "what is printed").choices(["text", "json"]).default("text");
}

/** Prints YAML documents without aliases, which not every reader of YAML resolves. */
export function printYaml(documents: readonly object[]): void {
  const texts = documents.map((document) => stringify(document, { aliasDuplicateObjects: false, lineWidth: 0 }));
  process.stdout.write(texts.join("---\n"));
}

export const RENDERERS = { text: renderText, markdown: renderMarkdown, json: safeJson } satisfies Record<
  string,
  (report: Report) => string
>;
export type ReportFormat = keyof typeof RENDERERS;

/** `-o, --output` of the commands that print a report. */
export function reportFormat(): Option {
  return new Option("-o, --output <format>", "format of the report").choices(Object.keys(RENDERERS)).default("text");
}

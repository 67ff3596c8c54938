import { Option } from "commander";
import { renderMarkdown } from "../preview/render-markdown";
import { renderText } from "../preview/render-text";
import type { Report } from "../preview/report";
import { safeJson } from "../text/plain-text";

export const RENDERERS = { text: renderText, markdown: renderMarkdown, json: safeJson } satisfies Record<
  string,
  (report: Report) => string
>;
export type ReportFormat = keyof typeof RENDERERS;

/** `-o, --output` of the commands that print a report. */
export function reportFormat(): Option {
  return new Option("-o, --output <format>", "format of the report").choices(Object.keys(RENDERERS)).default("text");
}

import { Option } from "commander";

export type OutputFormat = "text" | "json";

/** `-o, --output`, which is the same for every command that prints what it has read. */
export function outputOption(): Option {
  return new Option("-o, --output <format>", "what is printed").choices(["text", "json"]).default("text");
}

import { Option } from "commander";

export type OutputFormat = "text" | "json";

/** `-o, --output`, the same for every command. */
export function outputOption(): Option {
  return new Option("-o, --output <format>", "what is printed").choices(["text", "json"]).default("text");
}

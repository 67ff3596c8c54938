/** A file that Kindstack runs or reads and that is not JavaScript. */
export interface Tool {
  readonly name: string;
  readonly version: string;
  /** The name of the file, on PATH and in the cache, where it is not the tool's. */
  readonly file?: string;
  /** The npm package with the tool for this platform, installed beside Kindstack; the file is at the package's top. */
  readonly package?: string;
  /** The arguments that make the tool print its version. Without them, PATH is not searched, as the version is unknown. */
  readonly versionArguments?: readonly string[];
  /** Where to get it from, tried in this order. */
  readonly sources: readonly Source[];
  /** What the user can do when all of them fail; by default, to install Go. */
  readonly remedy?: string;
}

/** The environment variable that names a file to be used instead of any other: `KINDSTACK_KUBE_APISERVER`. */
export function variableOf({ name }: Tool): string {
  return `KINDSTACK_${name.toUpperCase().replaceAll("-", "_")}`;
}

export interface Source {
  /** Names this source in messages: "download from dl.k8s.io", "go build". */
  readonly label: string;
  /** How long it takes on two cores, in seconds. */
  readonly estimatedSeconds: number;
  /**
   * Creates the tool at `file`, below `home`, an empty folder. `scratch` is another empty folder. The caller removes both.
   */
  make(paths: { file: string; home: string; scratch: string; signal: AbortSignal }): Promise<void>;
}

export type ToolEvent =
  | { type: "waiting" | "waited"; tool: Tool }
  | { type: "making"; tool: Tool; source: Source }
  | { type: "made"; tool: Tool; source: Source }
  | { type: "failed"; tool: Tool; source: Source; reason: string };

/** A tool is not available; the message has the error of each source and what the user can do. */
export class ToolUnavailableError extends Error {
  override readonly name = "ToolUnavailableError";
}

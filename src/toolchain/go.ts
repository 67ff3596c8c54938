import fs from "node:fs/promises";
import path from "node:path";
import { ExecaError, execa } from "execa";
import { packageRoot } from "../package";
import type { Source } from "./tool";

/** The label of a source that a machine without Go lacks. */
export const GO_BUILD = "go build";

/**
 * Builds a Go program. The versions are those of the module's go.mod, authenticated by the go.sum beside it; the module
 * is copied, because the go command writes to both.
 */
export function goBuild(build: {
  /** A folder of this package with a go.mod, a go.sum and, unless the program is another module's, its sources. */
  module: string;
  package: string;
  /** Values of string variables that are set at link time, by their full name. */
  variables?: Readonly<Record<string, string>>;
  tags?: string;
  /** Patterns of packages to compile without inlining, which takes the compiler a third of its time. */
  withoutInlining?: readonly string[];
  estimatedSeconds: number;
}): Source {
  return {
    label: GO_BUILD,
    estimatedSeconds: build.estimatedSeconds,
    async make({ file, scratch, signal }) {
      const settings = Object.entries(build.variables ?? {}).map(([name, value]) => ` -X ${name}=${value}`);
      await copyModule(build.module, scratch);
      const tags = build.tags === undefined ? [] : ["-tags", build.tags];
      const compiler = ["all=", ...(build.withoutInlining ?? []).map((packages) => `${packages}=-l `)];
      const flags = [
        ...["-mod=mod", "-trimpath", ...tags],
        // The linker drops debug information, which takes a tenth of the compiler's time.
        ...compiler.map((pattern) => `-gcflags=${pattern}-dwarf=false`),
        ...["-ldflags", `-s -w${settings.join("")}`, "-o", file],
      ];
      await go(["build", ...flags, build.package], scratch, signal);
    },
  };
}

/** Joins text files of a Go module into one, as YAML documents. */
export function goModuleDocuments(documents: { module: string; path: string; files: string[] }): Source {
  return {
    label: "go mod download",
    estimatedSeconds: 10,
    async make({ file, scratch, signal }) {
      await copyModule(documents.module, scratch);
      await go(["mod", "download", documents.path], scratch, signal);
      const home = await go(["list", "-mod=mod", "-m", "-f", "{{.Dir}}", documents.path], scratch, signal);
      const texts = await Promise.all(documents.files.map((file) => fs.readFile(path.join(home, file), "utf8")));
      await fs.writeFile(file, texts.join("\n---\n"));
    },
  };
}

async function copyModule(module: string, into: string): Promise<void> {
  await fs.cp(path.join(packageRoot, module), into, { recursive: true });
}

/** A Go that is older than the module's go.mod demands refuses the module, and names the version. */
async function go(goArguments: string[], cwd: string, signal: AbortSignal): Promise<string> {
  try {
    const { stdout } = await execa("go", goArguments, {
      cwd,
      cancelSignal: signal,
      killSignal: "SIGINT", // the go command then removes its own temporary files
      stdin: "ignore",
      env: { GOTOOLCHAIN: "local", GOWORK: "off", CGO_ENABLED: "0" },
    });
    return stdout.trim();
  } catch (error) {
    if (!(error instanceof ExecaError)) throw error;
    if (error.code === "ENOENT") throw new Error("Go is not installed (no go on PATH)");
    const lines = String(error.stderr ?? "")
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("go: downloading"));
    throw new Error(lines.slice(-8).join("\n") || error.shortMessage);
  }
}

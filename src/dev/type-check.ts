import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import type ts from "typescript";

/** What a check found. */
export interface TypeCheckResult {
  /** `<file>:<line>: <message>` */
  errors: string[];
  /** The checked sources, without those of `node_modules`. */
  files: string[];
}

/**
 * Checks the types of a module and all that it imports, by the nearest `tsconfig.json` and with the TypeScript that is
 * installed beside it. Files that are the same as at the last check are not parsed again, and checked again only when
 * an import of theirs has changed for its users.
 */
export class TypeCheck {
  readonly #ts: typeof ts;
  readonly #config: string;
  readonly #entry: string;
  readonly #sources = new Map<string, { modifiedMs: number; source: ts.SourceFile | undefined }>();
  #program: ts.SemanticDiagnosticsBuilderProgram | undefined;

  private constructor(typescript: typeof ts, config: string, entry: string) {
    this.#ts = typescript;
    this.#config = config;
    this.#entry = entry;
  }

  /** @returns why there is no check, where there is no `tsconfig.json` or no TypeScript */
  static open(entry: string): TypeCheck | string {
    const config = findUpwards(path.dirname(entry), "tsconfig.json");
    if (config === undefined) return "there is no tsconfig.json";
    let typescript: typeof ts;
    try {
      typescript = createRequire(config)("typescript") as typeof ts;
    } catch {
      return `typescript is not installed for ${config}`;
    }
    if (typescript.createProgram === undefined) {
      return `TypeScript ${typescript.version} has no API for checks`;
    }
    return new TypeCheck(typescript, config, entry);
  }

  check(): TypeCheckResult {
    const { sys, readConfigFile, parseJsonConfigFileContent } = this.#ts;
    const { config, error } = readConfigFile(this.#config, sys.readFile);
    const folder = path.dirname(this.#config);
    const parsed = parseJsonConfigFileContent(config ?? {}, sys, folder, { noEmit: true }, this.#config);
    const program = this.#ts.createSemanticDiagnosticsBuilderProgram(
      // Errors in tests do not keep a kind back. Declarations of globals are imported by no module.
      [this.#entry, ...parsed.fileNames.filter((file) => file.endsWith(".d.ts"))],
      parsed.options,
      this.#host(parsed.options),
      this.#program,
      error ? [error] : parsed.errors,
    );
    this.#program = program;
    const diagnostics = [
      ...program.getConfigFileParsingDiagnostics(),
      ...program.getOptionsDiagnostics(),
      ...program.getGlobalDiagnostics(),
      ...program.getSyntacticDiagnostics(),
      ...program.getSemanticDiagnostics(),
    ];
    return {
      errors: diagnostics.map((diagnostic) => this.#describe(diagnostic)),
      files: program
        .getSourceFiles()
        .map(({ fileName }) => fileName)
        .filter((file) => !file.includes("/node_modules/")),
    };
  }

  /** Reads each file once per change. */
  #host(options: ts.CompilerOptions): ts.CompilerHost {
    const host = this.#ts.createIncrementalCompilerHost(options);
    return {
      ...host,
      getSourceFile: (file, ...rest) => {
        const modifiedMs = fs.statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
        const known = this.#sources.get(file);
        if (known?.modifiedMs === modifiedMs) return known.source;
        const source = host.getSourceFile(file, ...rest);
        this.#sources.set(file, { modifiedMs, source });
        return source;
      },
    };
  }

  #describe({ file, start, messageText }: ts.Diagnostic): string {
    const message = this.#ts.flattenDiagnosticMessageText(messageText, "\n");
    if (file === undefined) return `${this.#config}: ${message}`;
    return `${file.fileName}:${file.getLineAndCharacterOfPosition(start ?? 0).line + 1}: ${message}`;
  }
}

function findUpwards(folder: string, name: string): string | undefined {
  const file = path.join(folder, name);
  if (fs.existsSync(file)) return file;
  return path.dirname(folder) === folder ? undefined : findUpwards(path.dirname(folder), name);
}

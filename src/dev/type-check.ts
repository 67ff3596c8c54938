import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { parentPort, workerData } from "node:worker_threads";
import type ts from "typescript";
import { errorMessageOf } from "../../providers/errors";
import { foldersFrom } from "../../providers/folders";

/*
 * Runs in a thread: the first check takes seconds and would block the operator. The thread gets the TypeScript modules
 * when it starts and checks them at each message.
 */

export interface TypeCheckAnswer {
  /** `<file>:<line>: <message>` */
  errors: string[];
  /** The checked sources, without those of `node_modules`. */
  files: string[];
  /** Modules that are not checked, and why. */
  unchecked: string[];
}

type Check = () => Pick<TypeCheckAnswer, "errors" | "files">;

const checks = new Map<string, Check>();
parentPort?.on("message", () => {
  const answer: TypeCheckAnswer = { errors: [], files: [], unchecked: [] };
  for (const entry of workerData as readonly string[]) {
    try {
      const check = checks.get(entry) ?? openCheck(entry);
      checks.set(entry, check);
      const { errors, files } = check();
      answer.errors.push(...errors);
      answer.files.push(...files);
    } catch (error) {
      answer.unchecked.push(`${entry}: ${errorMessageOf(error)}`);
    }
  }
  parentPort?.postMessage(answer);
});

/**
 * Checks the types of a module and all that it imports, by the nearest `tsconfig.json` and with the TypeScript that is
 * installed there. Files that are the same as at the last check are not parsed again, and checked again only when an
 * import of theirs has changed for its users.
 */
function openCheck(entry: string): Check {
  const configFiles = foldersFrom(path.dirname(entry)).map((folder) => path.join(folder, "tsconfig.json"));
  const configFile = configFiles.find((file) => fs.existsSync(file));
  if (configFile === undefined) throw new Error("there is no tsconfig.json");
  const compiler = typescriptOf(configFile);
  const sources = new Map<string, { modifiedMs: number; source: ts.SourceFile | undefined }>();
  /** Reads each file once per change. */
  const hostOf = (options: ts.CompilerOptions): ts.CompilerHost => {
    const host = compiler.createIncrementalCompilerHost(options);
    const getSourceFile: typeof host.getSourceFile = (file, ...rest) => {
      const modifiedMs = fs.statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
      const known = sources.get(file);
      if (known?.modifiedMs === modifiedMs) return known.source;
      const source = host.getSourceFile(file, ...rest);
      sources.set(file, { modifiedMs, source });
      return source;
    };
    return { ...host, getSourceFile };
  };
  const describe = ({ file, start, messageText }: ts.Diagnostic) => {
    const message = compiler.flattenDiagnosticMessageText(messageText, "\n");
    if (file === undefined) return `${configFile}: ${message}`;
    return `${file.fileName}:${file.getLineAndCharacterOfPosition(start ?? 0).line + 1}: ${message}`;
  };
  let program: ts.SemanticDiagnosticsBuilderProgram | undefined;
  return () => {
    const { config, error } = compiler.readConfigFile(configFile, compiler.sys.readFile);
    const { options, fileNames, errors } = compiler.parseJsonConfigFileContent(
      config ?? {},
      compiler.sys,
      path.dirname(configFile),
      { noEmit: true },
      configFile,
    );
    program = compiler.createSemanticDiagnosticsBuilderProgram(
      // Errors in tests do not matter here. Declarations of globals are added, since no module imports them.
      [entry, ...fileNames.filter((file) => file.endsWith(".d.ts"))],
      options,
      hostOf(options),
      program,
      error ? [error] : errors,
    );
    const diagnostics = [
      ...program.getConfigFileParsingDiagnostics(),
      ...program.getOptionsDiagnostics(),
      ...program.getGlobalDiagnostics(),
      ...program.getSyntacticDiagnostics(),
      ...program.getSemanticDiagnostics(),
    ];
    const files = program.getSourceFiles().map(({ fileName }) => fileName);
    return { errors: diagnostics.map(describe), files: files.filter((file) => !file.includes("/node_modules/")) };
  };
}

function typescriptOf(configFile: string): typeof ts {
  let compiler: typeof ts;
  try {
    compiler = createRequire(configFile)("typescript") as typeof ts;
  } catch {
    throw new Error(`typescript is not installed for ${configFile}`);
  }
  if (compiler.createProgram === undefined) throw new Error(`TypeScript ${compiler.version} has no API for checks`);
  return compiler;
}

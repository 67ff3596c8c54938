import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import type { AnyKind } from "./kind";

const PROVIDERS = resolve(__dirname, "../../providers");
/** This package: of it, only the providers count. */
const PACKAGE = resolve(__dirname, "../..");
/** What a module names in `import … from "…"`, `import("…")` or `require("…")`, if it is a file, or a provider by its package. */
const IMPORTED = /\b(?:from|import|require)\s*\(?\s*["'](?:(\.[^"']+)|kindstack\/providers\/([^"']+))["']/g;
/** JavaScript and TypeScript, without declarations of types. */
const CODE = /(\.[cm]?js|(?<!\.d)\.[cm]?ts)$/;

/**
 * A digest of what an update of this kind runs: the kind's folder, the modules of providers and of its own package that it
 * imports, directly or not, and the settings that it reads.
 *
 * @param providers the folder of the providers
 */
export function programDigest(kind: Pick<AnyKind, "directory" | "capabilities">, providers = PROVIDERS): string {
  const hash = createHash("sha256");
  const own = codeFiles(kind.directory).map((file) => join(kind.directory, file));
  for (const file of own) hash.update(relative(kind.directory, file)).update(readFileSync(file));
  for (const file of importedModules(own, providers)) hash.update(relative(providers, file)).update(readFileSync(file));
  return hash
    .update(JSON.stringify(kind.capabilities.settings?.() ?? null))
    .digest("hex")
    .slice(0, 16);
}

/** The providers, and the files outside of this package, that these import, directly or not, in a fixed order. */
function importedModules(files: readonly string[], providers: string): string[] {
  const found = new Set<string>();
  const left = [...files];
  for (let file = left.pop(); file !== undefined; file = left.pop()) {
    for (const [, path, provider = ""] of readFileSync(file, "utf8").matchAll(IMPORTED)) {
      const imported = moduleFile(path === undefined ? join(providers, provider) : resolve(dirname(file), path));
      if (imported === undefined || found.has(imported)) continue;
      if (imported.startsWith(PACKAGE + sep) && !imported.startsWith(providers + sep)) continue;
      found.add(imported);
      left.push(imported);
    }
  }
  return [...found].sort();
}

/** Compiled or not, as this module is. */
function moduleFile(path: string): string | undefined {
  const source = path.replace(/js$/, "ts"); // TypeScript's own imports may name what it compiles to
  return [`${path}.js`, `${path}.ts`, join(path, "index.js"), join(path, "index.ts"), path, source].find(
    (file) => CODE.test(file) && existsSync(file),
  );
}

function codeFiles(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: "utf8" })
    .filter((file) => CODE.test(file))
    .sort();
}

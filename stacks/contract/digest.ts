import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { AnyKind } from "./kind";

const PROVIDERS = resolve(__dirname, "../../providers");

/**
 * A digest of the code that an update of this kind runs: the kind's folder and the providers, and the
 * settings that it reads. An object whose last
 * update ran the same code on the same generation needs no other.
 */
export function programDigest(kind: AnyKind): string {
  const hash = createHash("sha256");
  for (const directory of [PROVIDERS, kind.directory]) {
    for (const file of codeFiles(directory)) hash.update(file).update(readFileSync(join(directory, file)));
  }
  return hash
    .update(JSON.stringify(kind.settings?.() ?? null))
    .digest("hex")
    .slice(0, 16);
}

function codeFiles(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: "utf8" })
    .filter((file) => /\.[jt]s$/.test(file) && !file.endsWith(".d.ts"))
    .sort();
}

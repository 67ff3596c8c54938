import { createHash } from "node:crypto";

/** Which of so many parts, counted from 0, a name belongs to: the same for ever and everywhere, and each about as large. */
export function partOf(name: string, parts: number): number {
  return parts === 1 ? 0 : createHash("sha256").update(name).digest().readUInt32BE() % parts;
}

import { dirname } from "node:path";

/** A folder, and all above it. */
export function foldersFrom(folder: string): string[] {
  const above = dirname(folder);
  return above === folder ? [folder] : [folder, ...foldersFrom(above)];
}

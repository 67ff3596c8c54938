import type { PatchOperation } from "../../../contract/index";

/** A patch that adds entries to a map of strings, which may not exist yet; empty when it has them. */
export function addToMap(
  path: string,
  map: Record<string, string> | undefined,
  entries: Record<string, string>,
): PatchOperation[] {
  const missing = Object.entries(entries).filter(([key, value]) => map?.[key] !== value);
  if (missing.length === 0) return [];
  return [
    ...(map === undefined ? [{ op: "add" as const, path, value: {} }] : []),
    ...missing.map(([key, value]) => ({ op: "add" as const, path: `${path}/${escaped(key)}`, value })),
  ];
}

function escaped(key: string): string {
  return key.replaceAll("~", "~0").replaceAll("/", "~1");
}

import type { PatchOperation } from "../../contract/index";

/** What puts entries into a map of strings that may not be there yet; nothing when they are in it. */
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

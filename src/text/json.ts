/** The value of a JSON text; `undefined` for invalid or incomplete JSON. */
export function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The same, if it fits the schema. */
export function parseJson<T>(schema: { Check(value: unknown): value is T }, text: string): T | undefined {
  const value = readJson(text);
  return schema.Check(value) ? value : undefined;
}

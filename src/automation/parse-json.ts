/** What a text of JSON says, if it fits the schema; `undefined` for what is torn, or something else. */
export function parseJson<T>(schema: { Check(value: unknown): value is T }, text: string): T | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return schema.Check(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** What a queue holds: a name, or something with an id that no other has. */
export type Item = string | { readonly id: string };

/** By what two items are the same. */
export function idOf(item: Item): string {
  return typeof item === "string" ? item : item.id;
}

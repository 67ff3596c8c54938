/** The items of a list in a text, separated by commas: of a variable, or an option. */
export function listItems(text: string): string[] {
  return text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}

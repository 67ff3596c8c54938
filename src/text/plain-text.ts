import { shortened } from "../../providers/shortened";

/*
 * What objects and files say reaches terminals and pull requests, where some characters are more than text.
 */

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

/** One line of text in which every character is visible: control characters are written as `\u001b`. */
export function visible(text: string): string {
  return text.replace(CONTROL, escapeCharacter);
}

/** The same for a text of several lines. */
export function visibleLines(text: string): string {
  return text.split("\n").map(visible).join("\n");
}

/** A value as JSON, of at most `limit` characters. */
export function shortValue(value: unknown, limit = 80): string {
  return shortened(visible(JSON.stringify(value) ?? ""), limit);
}

/** The same for one of several values in a line, which may not be there. */
export function describeValue(value: unknown): string {
  return value === undefined ? "nothing" : shortValue(value, 60);
}

/** JSON text in which no character can take effect on a terminal; the same value when it is parsed. */
export function safeJson(value: unknown): string {
  return JSON.stringify(value, undefined, 2).replace(CONTROL, (character) =>
    character === "\n" ? character : escapeCharacter(character),
  );
}

export function escapeCharacter(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

import { shortened } from "../../providers/shortened";

/* What objects and files say reaches terminals and pull requests, where some characters are more than text. */

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

/** Both of a change, each of at most `limit` characters: of long values that begin alike, from shortly before where they differ. */
export function shortChange(before: unknown, after: unknown, limit = 80): [before: string, after: string] {
  const texts = [before, after].map((value) => visible(JSON.stringify(value) ?? "")) as [string, string];
  const [first, second] = texts;
  let same = 0;
  while (same < first.length && first[same] === second[same]) same++;
  const isLong = texts.some((text) => text.length > limit);
  const from = isLong && same > limit / 2 ? same - CONTEXT : 0;
  const cut = (text: string) =>
    shortened(from > 0 ? `…${text.slice(from).replace(/^[\udc00-\udfff]/, "")}` : text, limit);
  return [cut(first), cut(second)];
}

/** So much of what is the same is shown before a difference. */
const CONTEXT = 15;

/** The same for one of several changes in a line, where either value may be missing. */
export function describeChange(before: unknown, after: unknown): [before: string, after: string] {
  const [first, second] = shortChange(before, after, 60);
  return [first || "nothing", second || "nothing"];
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

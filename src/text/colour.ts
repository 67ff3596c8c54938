import { styleText } from "node:util";

/** What a reader looks for first: what is lost or wrong, what changes, and what is new. */
const COLOURS = {
  create: "green",
  adopt: "green",
  update: "yellow",
  "hand-over": "yellow",
  move: "yellow",
  unchecked: "yellow",
  waiting: "yellow",
  replace: "red",
  delete: "red",
  failed: "red",
  invalid: "red",
  error: "red",
  False: "red",
} as const;

/**
 * A text in the colour of a word, such as an operation, where the output is a terminal that shows colours. `NO_COLOR` and
 * `FORCE_COLOR` decide as in other programs on Node.js.
 */
export function coloured(word: string, text = word): string {
  return Object.hasOwn(COLOURS, word) ? styleText(COLOURS[word as keyof typeof COLOURS], text) : text;
}

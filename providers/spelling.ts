/*
 * A word out of a few that a user writes, in any case of its letters and with blanks around it. Policies (CEL) and the operator
 * (JavaScript) disagree about what a blank and the other case of a letter are, such as U+FEFF and U+212A: so both match the one
 * pattern of plain characters.
 */

/** Of what is longer, nothing is read: a policy may cost only so much. */
const MAX_LENGTH = 100;
const BLANKS = "[ \\t\\r\\n]*";

export interface Spelling<T extends string = string> {
  readonly words: readonly T[];
  /** The word that a text spells, if it spells any. */
  read(text: string): T | undefined;
  /** The same in CEL: whether an expression of a string spells one of these words. */
  spells(expression: string, words?: readonly T[]): string;
  /** Why a text is none of the words, after what it is the value of. */
  problem(text: string): string;
  /** The same in CEL, of an expression of a string. */
  problemOf(expression: string): string;
}

export function spellingOf<const T extends string>(words: readonly T[]): Spelling<T> {
  const patterns = words.map((word) => [word, new RegExp(patternOf(word))] as const);
  const must = `must be ${words.join(" or ")}`;
  return {
    words,
    read: (text) => (text.length > MAX_LENGTH ? undefined : patterns.find(([, pattern]) => pattern.test(text))?.[0]),
    spells: (expression, some = words) => {
      const pattern = `^${BLANKS}(${some.map(inAnyCase).join("|")})${BLANKS}$`;
      return `(size(${expression}) <= ${MAX_LENGTH} && ${expression}.matches(r'${pattern}'))`;
    },
    problem: (text) => `${JSON.stringify(text.slice(0, MAX_LENGTH))} ${must}`,
    problemOf: (expression) => `'"' + ${shortened(expression)} + '" ${must}'`,
  };
}

/** A text as a message of a policy quotes it, in CEL. */
export function shortened(expression: string): string {
  return `(size(${expression}) <= ${MAX_LENGTH} ? ${expression} : ${expression}.substring(0, ${MAX_LENGTH}))`;
}

/** The letters of a text in either case, as a regular expression of both languages. */
export function inAnyCase(text: string): string {
  return text.replace(/[A-Za-z]|[^\w-]/g, (character) =>
    /[A-Za-z]/.test(character) ? `[${character.toUpperCase()}${character.toLowerCase()}]` : `\\${character}`,
  );
}

function patternOf(word: string): string {
  return `^${BLANKS}${inAnyCase(word)}${BLANKS}$`;
}

/*
 * Plain words of YAML as go-yaml reads them (YAML 1.1, but for numbers to the base of 60): `no` is false, `0644` is octal; dates and
 * 1:30 are texts.
 */

const NULL = /^(?:~|null|Null|NULL|)$/;
const BOOLEAN = /^(?:y|Y|yes|Yes|YES|true|True|TRUE|on|On|ON|n|N|no|No|NO|false|False|FALSE|off|Off|OFF)$/;
const NO_NUMBER = /^[-+]?\.(?:inf|Inf|INF)$|^\.(?:nan|NaN|NAN)$|^\.\d[\deE+-]*_[\d_eE+-]*$/;
const INTEGER = /^[-+]?(?:0[bB][01]+|0[xX][\da-fA-F]+|0[oO]?[0-7]*|[1-9]\d*)$/;
const FLOAT = /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$/;

/** A number that JSON has none for, or that not all read as one, is `NaN`. */
export function readPlain(text: string): unknown {
  if (NULL.test(text)) return null;
  if (BOOLEAN.test(text)) return /^(?:y|t|on)/i.test(text);
  if (NO_NUMBER.test(text)) return Number.NaN;
  // Between digits, but not where the first character is a dot.
  const digits = /^[-+\d]/.test(text) ? text.replaceAll("_", "") : text;
  if (INTEGER.test(digits)) return integerOf(digits);
  return FLOAT.test(digits) ? Number(digits) : text;
}

function integerOf(text: string): number {
  const digits = text.replace(/^[-+]/, "");
  const isOctal = /^0[oO]?[0-7]+$/.test(digits);
  const value = isOctal ? Number.parseInt(digits.replace(/^0[oO]?/, ""), 8) : Number(digits);
  return text.startsWith("-") ? -value : value;
}

/** A number as JSON has it: `undefined` where readers disagree about it, as beyond 2^53. */
export function numberOf(value: number): number | undefined {
  if (!Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value))) return undefined;
  return value === 0 ? 0 : value; // there is no -0
}

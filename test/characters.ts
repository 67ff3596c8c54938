import fc from "fast-check";

const SURROGATES = { from: 0xd800, count: 0x800 };

/** Any character of Unicode. fast-check's own `binary` first makes a table of them all, which takes each worker a second. */
export const anyCharacter = fc
  .integer({ min: 0, max: 0x10ffff - SURROGATES.count })
  .map((index) => String.fromCodePoint(index < SURROGATES.from ? index : index + SURROGATES.count));

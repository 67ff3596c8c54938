import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { TerminalError } from "../../../providers/errors";
import { parseTableName, quoteTableName } from "../../../providers/postgres/identifier";
import { anyCharacter } from "../../characters";

const part = fc
  .string({ unit: anyCharacter, minLength: 1, maxLength: 63 })
  .filter((text) => !/[\0.]/.test(text) && Buffer.byteLength(text) <= 63);

describe("parseTableName", () => {
  it("takes a table and a table in a schema literally", () => {
    expect(parseTableName("students", "table")).toEqual({ name: "students" });
    expect(parseTableName('My "School".Students; --', "table")).toEqual({
      schema: 'My "School"',
      name: "Students; --",
    });
  });

  it("gives back every name of one or two valid parts", () => {
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 2 }), (parts) => {
        const { schema, name } = parseTableName(parts.join("."), "table");
        expect([schema, name].filter((found) => found !== undefined)).toEqual(parts);
      }),
    );
  });

  it.each([
    ["", "must not be empty"],
    [".", "must not be empty"],
    ["students.", "must not be empty"],
    ["a.b.c", "more than one dot"],
    ["a\0b", "must not contain NUL"],
    ["\ud800", "unpaired surrogates"],
    ["x".repeat(64), "at most 63 bytes, this one has 64"],
    ["é".repeat(32), "at most 63 bytes, this one has 64"],
  ])("refuses %j", (text, problem) => {
    const parse = () => parseTableName(text, "spec.table");
    expect(parse).toThrow(TerminalError);
    expect(parse).toThrow(/^spec\.table: ".*" is not the name of a table: .*; allowed is "table" or "schema\.table"$/s);
    expect(parse).toThrow(problem);
  });
});

describe("quoting", () => {
  it("lets nothing out of the quotes", () => {
    fc.assert(
      fc.property(part, (name) => {
        const quoted = quoteTableName({ name });
        expect(quoted).toMatch(/^"(?:[^"]|"")+"$/);
        expect(quoted.slice(1, -1).replaceAll('""', '"')).toBe(name);
      }),
    );
  });

  it("quotes schema and table each", () => {
    expect(quoteTableName({ schema: 'a"b', name: "c" })).toBe('"a""b"."c"');
    expect(quoteTableName({ name: "C" })).toBe('"C"');
  });
});

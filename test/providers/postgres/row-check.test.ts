import { describe, expect, it } from "vitest";
import type { RowInputs } from "../../../providers/postgres/row-inputs";
import { checkRow } from "../../../providers/postgres/row-inputs";

const row: RowInputs = {
  table: "students",
  key: { id: "default/alex" },
  values: { name: "alex", age: 23, enrolled: true, country: null },
  owner: { uid: "1", description: "PostgresWriter.demo.yash.com/default/alex" },
};

describe("checkRow", () => {
  it("accepts a row", () => {
    expect(checkRow(row)).toEqual([]);
  });

  it("accepts a column with the name of what every JavaScript object has", () => {
    expect(checkRow({ ...row, values: { constructor: "Ferrari" } })).toEqual([]);
  });

  it.each<[string, object, string]>([
    ["table", { table: undefined }, "is required"],
    ["table", { table: "a.b.c" }, "more than one dot"],
    ["key", { key: {} }, "exactly one column, not 0"],
    ["key", { key: { id: "1", other: "2" } }, "exactly one column, not 2"],
    ["key.id", { key: { id: 1 } }, "must be a text"],
    ["key.id", { key: { id: "a\0b" } }, "must not contain NUL"],
    ["values", { values: {} }, "at least one column"],
    ["values", { values: { ["x".repeat(64)]: 1 } }, "at most 63 bytes"],
    ["values.id", { values: { id: "2" } }, "is the key column"],
    ["values.name", { values: { name: "a\0b" } }, "must not contain NUL"],
    ["values.name", { values: { name: "\udfff" } }, "unpaired surrogates"],
    ["values.name", { values: { name: ["alex"] } }, "must be a single value"],
    ["owner.uid", { owner: undefined }, "is required"],
  ])("names %s when given %o", (property, change, reason) => {
    expect(checkRow({ ...row, ...change })).toEqual([{ property, reason: expect.stringContaining(reason) }]);
  });
});

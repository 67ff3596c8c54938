import { describe, expect, it } from "vitest";
import { TerminalError } from "../../../providers/errors";
import { refuseTable, refuseTableName } from "../../../providers/postgres/allow-list";

const students = { schema: "public", name: "students", visible: true };
const hidden = { schema: "staff", name: "students", visible: false };

function list(patterns: string | undefined): NodeJS.ProcessEnv {
  return patterns === undefined ? {} : { KINDSTACK_POSTGRES_TABLES: patterns };
}

describe("the allow-list", () => {
  it.each([
    [undefined, students],
    [undefined, hidden],
    ["students", students],
    ["public.*", students],
    ["public.students", students],
    ["teachers, stud*", students],
    ["*", students],
    ["*.students", hidden],
    ["staff.students", hidden],
  ])("%s allows %o", (patterns, table) => {
    expect(() => refuseTable(table, list(patterns))).not.toThrow();
    expect(() => refuseTableName(table, list(patterns))).not.toThrow();
  });

  it.each([
    ["", students],
    ["teachers", students],
    ["student", students],
    ["s.udents", students],
    ["public.teachers", students],
    ["students", hidden],
    ["*", hidden],
    ["public.*", hidden],
    ["*.*", { schema: "pg_catalog", name: "pg_class", visible: true }],
    [undefined, { schema: "kindstack_ownership", name: "rows", visible: false }],
    [undefined, { schema: "information_schema", name: "tables", visible: false }],
  ])("%s does not allow %o", (patterns, table) => {
    expect(() => refuseTable(table, list(patterns))).toThrow(TerminalError);
  });

  it("refuses a name that no allowed table can have before a database is asked", () => {
    const environment = list("students, staff.teachers");
    expect(() => refuseTableName({ name: "pupils" }, environment)).toThrow(TerminalError);
    expect(() => refuseTableName({ schema: "public", name: "teachers" }, environment)).toThrow(TerminalError);
    expect(() => refuseTableName({ schema: "kindstack_ownership", name: "rows" }, {})).toThrow(TerminalError);
  });

  it("leaves to the database's answer what a name may mean", () => {
    const environment = list("students, staff.teachers");
    expect(() => refuseTableName({ name: "teachers" }, environment)).not.toThrow();
    expect(() => refuseTableName({ schema: "public", name: "students" }, environment)).not.toThrow();
  });

  it("says what is allowed", () => {
    const refuse = () => refuseTable(hidden, list("students,public.*"));
    expect(refuse).toThrow(
      'table "staff.students" must not be written: KINDSTACK_POSTGRES_TABLES allows students,public.*, except in the schemas',
    );
    expect(refuse).toThrow(expect.objectContaining({ reason: "TableNotAllowed" }));
  });
});

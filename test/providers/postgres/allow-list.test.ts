import { afterEach, describe, expect, it, vi } from "vitest";
import { TerminalError } from "../../../providers/errors";
import { refuseTableName } from "../../../providers/postgres/identifier";

const students = { schema: "public", name: "students", visible: true };
const hidden = { schema: "staff", name: "students", visible: false };

const list = (patterns: string | undefined) => vi.stubEnv("KINDSTACK_POSTGRES_TABLES", patterns);

afterEach(() => vi.unstubAllEnvs());

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
    list(patterns);
    const { schema, name } = table;
    expect(() => refuseTableName(table)).not.toThrow();
    expect(() => refuseTableName({ schema, name })).not.toThrow();
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
    list(patterns);
    expect(() => refuseTableName(table)).toThrow(TerminalError);
  });

  it("refuses a name that no allowed table can have before a database is asked", () => {
    list("students, staff.teachers");
    expect(() => refuseTableName({ name: "pupils" })).toThrow(TerminalError);
    expect(() => refuseTableName({ schema: "public", name: "teachers" })).toThrow(TerminalError);
    list(undefined);
    expect(() => refuseTableName({ schema: "kindstack_ownership", name: "rows" })).toThrow(TerminalError);
  });

  it("leaves to the database's answer what a name may mean", () => {
    list("students, staff.teachers");
    expect(() => refuseTableName({ name: "teachers" })).not.toThrow();
    expect(() => refuseTableName({ schema: "public", name: "students" })).not.toThrow();
  });

  it.each([
    ["team-a", students, true],
    ["team-b", students, true],
    ["team-c", students, true], // by the entry without a namespace
    ["team-a", hidden, false],
    ["team-b", hidden, true],
    ["team-c", hidden, false],
    [undefined, students, true],
    [undefined, hidden, false],
  ])("of entries with a namespace, in %s for %o: %s", (namespace, table, allowed) => {
    list("team-a=app.*, team-b=*.students, students");
    const refuse = expect(() => refuseTableName(table, namespace));
    if (allowed) refuse.not.toThrow();
    else refuse.toThrow(TerminalError);
  });

  it("does not show one namespace what others are allowed", () => {
    list("team-a=app.secret,team-b=students");
    expect(() => refuseTableName(hidden, "team-b")).toThrow(
      "is not allowed: KINDSTACK_POSTGRES_TABLES allows students in the namespace team-b, except",
    );
    expect(() => refuseTableName(hidden, "team-c")).toThrow("allows none in the namespace team-c, except");
  });

  it("says what is allowed", () => {
    list("students,public.*");
    const refuse = () => refuseTableName(hidden);
    expect(refuse).toThrow(
      'table "staff.students" is not allowed: KINDSTACK_POSTGRES_TABLES allows students,public.*, except those in the schemas',
    );
    expect(refuse).toThrow(expect.objectContaining({ reason: "TableNotAllowed" }));
  });
});

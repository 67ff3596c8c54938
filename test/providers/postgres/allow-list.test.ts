import { afterEach, describe, expect, it, vi } from "vitest";
import { TerminalError } from "../../../providers/errors";
import { refuseTableName } from "../../../providers/postgres/identifier";

const students = { schema: "public", name: "students", visible: true };
const hidden = { schema: "staff", name: "students", visible: false };

type Table = Parameters<typeof refuseTableName>[0];
const list = (patterns: string | undefined) => vi.stubEnv("KINDSTACK_POSTGRES_TABLES", patterns);

afterEach(() => vi.unstubAllEnvs());

describe("the allow-list", () => {
  it.each<[string | undefined, Table]>([
    [undefined, students],
    [undefined, hidden],
    ["students", students],
    ["public.*", students],
    ["public.students", students],
    ["teachers, stud*", students],
    ["*", students],
    ["*.students", hidden],
    ["staff.students", hidden],
    ["students, staff.teachers", { name: "teachers" }], // which table that is, the database tells
    ["students, staff.teachers", { schema: "public", name: "students" }],
  ])("%s allows %o", (patterns, table) => {
    list(patterns);
    const { visible: _, ...unseen } = table;
    for (const known of [table, unseen]) expect(() => refuseTableName(known)).not.toThrow();
  });

  it.each<[string | undefined, Table]>([
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
    [undefined, { schema: "kindstack_ownership", name: "rows" }],
    ["students, staff.teachers", { name: "pupils" }], // whichever table that is
    ["students, staff.teachers", { schema: "public", name: "teachers" }],
  ])("%s does not allow %o", (patterns, table) => {
    list(patterns);
    expect(() => refuseTableName(table)).toThrow(TerminalError);
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

import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { TerminalError } from "../../../../providers/errors";
import type { LiveObject } from "../../../../providers/kubernetes/client";
import { parseObject } from "../../../../stacks/contract/kind";
import { postgresWriter } from "../../../../stacks/kinds/postgres-writer/kind";
import { wantedRow } from "../../../../stacks/kinds/postgres-writer/program";

function writer(spec: object = {}): LiveObject {
  return {
    apiVersion: "demo.yash.com/v1",
    kind: "PostgresWriter",
    metadata: { name: "sample-student", namespace: "default", uid: "1", resourceVersion: "1", generation: 1 },
    spec: { table: "students", name: "alex", age: 23, country: "canada", ...spec },
  };
}

describe("PostgresWriter", () => {
  it("takes its sample, and registers the row that the sample describes", () => {
    const sample = parse(fs.readFileSync(path.join(postgresWriter.directory, "sample.yaml"), "utf8"));
    expect(wantedRow(parseObject(postgresWriter, sample))).toEqual({
      table: "students",
      key: { id: "default/sample-student" },
      values: { name: "alex", age: 23, country: "canada" },
    });
  });

  it("reports the row's key", () => {
    expect(postgresWriter.report(parseObject(postgresWriter, writer()), [])).toEqual({ id: "default/sample-student" });
  });

  it.each([{ table: "school.students" }, { age: 0 }, { age: 2147483647 }, { name: "" }, { name: "'; DROP TABLE x" }])(
    "accepts %o",
    (spec) => {
      expect(parseObject(postgresWriter, writer(spec)).spec).toMatchObject(spec);
    },
  );

  it.each([
    [{ table: undefined }, "spec.table: missing"],
    [{ table: "" }, 'spec.table: ""'],
    [{ table: "a.b.c" }, 'spec.table: "a.b.c"'],
    [{ table: "é".repeat(32) }, "at most 63 bytes"],
    [{ age: -1 }, "spec.age: -1 must be >= 0"],
    [{ age: 2147483648 }, "spec.age: 2147483648 must be <= 2147483647"],
    [{ age: 1.5 }, "spec.age: 1.5 must be integer"],
    [{ age: "23" }, 'spec.age: "23" must be integer'],
    [{ name: "a\0b" }, "spec.name: "],
    [{ country: 7 }, "spec.country: 7 must be string"],
  ])("refuses %o naming the field", (spec, message) => {
    const parsing = () => parseObject(postgresWriter, writer(spec));
    expect(parsing).toThrow(TerminalError);
    expect(parsing).toThrow(message);
  });
});

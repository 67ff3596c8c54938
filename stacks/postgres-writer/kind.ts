import { refuseTableName } from "../../providers/postgres/allow-list";
import { findDriftedRows } from "../../providers/postgres/drift";
import { parseTableName } from "../../providers/postgres/identifier";
import { removeStrayRows } from "../../providers/postgres/strays";
import { defineKind } from "../contract/kind";
import { KEY_COLUMN, postgresWriterProgram, wantedRow } from "./program";
import { postgresWriterSpec, postgresWriterStatus } from "./schema";
import { postgresWriterReport } from "./status";

export const postgresWriter = defineKind({
  group: "demo.yash.com",
  version: "v1",
  kind: "PostgresWriter",
  plural: "postgreswriters",
  singular: "postgreswriter",
  scope: "Namespaced",
  description: "One row in a table of a PostgreSQL database.",
  spec: postgresWriterSpec,
  status: postgresWriterStatus,
  columns: [
    { name: "Table", type: "string", jsonPath: ".spec.table" },
    { name: "Id", type: "string", jsonPath: ".status.id" },
  ],
  granularity: "namespace",
  owns: [],
  directory: __dirname,
  // A pattern counts characters; PostgreSQL counts bytes. What is refused here does not hold up the others in the stack.
  validate: ({ spec }) => refuseTableName(parseTableName(spec.table, "spec.table")),
  program: postgresWriterProgram,
  report: postgresWriterReport,
  findDrift: (objects) =>
    findDriftedRows(objects.map((object) => ({ ...wantedRow(object), uid: object.metadata.uid }))),
  removeStrays: (owner, kept, options) => removeStrayRows(owner, KEY_COLUMN, kept, options),
});

import {
  findDriftedRows,
  parseTableName,
  refuseTableName,
  removeUntrackedRows,
} from "../../../providers/postgres/index";
import { defineKind, objectKey } from "../../contract/index";
import { KEY_COLUMN, postgresWriterProgram, wantedRow } from "./program";
import { postgresWriterSpec, postgresWriterStatus } from "./schema";

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
  owns: [],
  directory: __dirname,
  // A pattern counts characters; PostgreSQL counts bytes.
  validate: ({ spec, metadata }) => refuseTableName(parseTableName(spec.table, "spec.table"), metadata.namespace),
  program: postgresWriterProgram,
  report: ({ metadata }) => ({ id: objectKey(metadata) }),
  capabilities: {
    external: {
      findDrift: (objects) =>
        findDriftedRows(objects.map((object) => ({ ...wantedRow(object), uid: object.metadata.uid }))),
      removeUntracked: (owner, kept, options, context) =>
        removeUntrackedRows(owner, KEY_COLUMN, kept, options, context),
    },
  },
});

import { Row, type RowInputs } from "../../../providers/postgres/index";
import { type KindObject, objectKey, type ProgramContext } from "../../contract/index";
import type { PostgresWriterSpec } from "./schema";

/** The key column of every table. */
export const KEY_COLUMN = "id";

/** One object, one row. */
export function postgresWriterProgram(
  object: KindObject<PostgresWriterSpec>,
  { owner, cluster }: ProgramContext,
): void {
  const { namespace } = object.metadata;
  new Row(objectKey(object.metadata), {
    ...wantedRow(object),
    owner: { ...owner, ...(cluster && { cluster }), ...(namespace && { namespace }) },
  });
}

export function wantedRow({ metadata, spec }: KindObject<PostgresWriterSpec>): Omit<RowInputs, "owner"> {
  const { table, name, age, country } = spec;
  return { table, key: { [KEY_COLUMN]: objectKey(metadata) }, values: { name, age, country } };
}

import { expect } from "vitest";
import { findDriftedRows } from "../../../providers/postgres/drift";
import { provider } from "../../../providers/postgres/row";
import type { RowInputs, RowOutputs } from "../../../providers/postgres/row-inputs";
import { rowIn, type TestDatabase } from "./database";

/* The calls of the provider of rows, without what the engine alone needs. */

export const create = async (inputs: RowInputs): Promise<RowOutputs> => (await provider.create(inputs)).outs;
export const update = async (olds: RowOutputs, news: RowInputs): Promise<RowOutputs> =>
  (await provider.update("id", olds, news)).outs;
export const read = async (outs: RowOutputs): Promise<RowOutputs | undefined> =>
  (await provider.read("id", outs)).props;
export const remove = (outs: RowOutputs): Promise<void> => provider.delete("id", outs);
export const release = (outs: RowOutputs): Promise<void> => provider.release("id", outs);

/** How a row differs from what is wanted. */
export async function driftOf(inputs: RowInputs): Promise<string | undefined> {
  const { drifted, unknown } = await findDriftedRows([{ ...inputs, uid: inputs.owner.uid }]);
  expect([...unknown]).toEqual([]);
  return drifted.get(inputs.owner.uid);
}

/** The SQL that ends a message, after these words. */
export function sqlAfter(words: string, error: Error | undefined): string {
  const [, sql] = error?.message.split(words) ?? [];
  if (sql === undefined) throw new Error(`no SQL after "${words}": ${error?.message}`);
  return sql;
}

/** A table with one row. */
export async function createdRow(
  database: TestDatabase,
  columns?: string,
): Promise<{ table: string; outs: RowOutputs }> {
  const table = await database.createStudents(columns);
  return { table, outs: await create(rowIn(table)) };
}

import { ClassifiedError } from "../errors";
import type { Reason } from "../reasons";
import { columnsOf, compareRows, type LiveColumns } from "./comparison";
import type { TableLocation } from "./identifier";
import { refuseTableName } from "./identifier";
import { describeHolder, describeUnmanaged, findRecord, mayClaim, rowConflict } from "./ownership";
import { withReadTransaction } from "./pool";
import { isThere } from "./row-absence";
import type { RowInputs } from "./row-inputs";
import { tableToWrite } from "./row-observation";
import { creationSql, hasRecords } from "./table-lock";
import { columnMissing } from "./tables";

/** What a write of a row would find, by looking alone. */
export interface RowFinding {
  /** Why the write would be refused. */
  refusal?: ClassifiedError;
  /** The columns that differ, as text, of a row that a creation takes over. */
  live?: LiveColumns;
}

/** Reasons that concern the table and not the row: they are known without a write. */
const OF_TABLE: readonly Reason[] = ["ColumnMissing", "KeyNotUnique", "SchemaMissing", "TableMissing", "TableReplaced"];

/**
 * Looks at what a write of a row would meet: the table with its columns, and whose the row is.
 *
 * @param claimant the UIDs under which the row may be recorded, and what the state has of it, which a new row is not in
 * @throws ClassifiedError when it cannot be told
 */
export async function inspectRow(
  inputs: RowInputs,
  { owners, made }: { owners: readonly string[]; made?: { incarnation: string; location: TableLocation } },
): Promise<RowFinding> {
  try {
    return await withReadTransaction(async (connection) => {
      const { table } = await tableToWrite(connection, [{ ...inputs, incarnation: "", ...made }]);
      refuseTableName(table, inputs.owner.namespace);
      const missing = columnsOf(inputs).find((column) => table.columns[column] === undefined);
      if (missing !== undefined) throw columnMissing(table, missing);
      const isRecorded = await hasRecords(connection);
      const record = isRecorded ? await findRecord(table, inputs) : undefined;
      if (record !== undefined && !mayClaim(record, inputs.owner, owners, made?.incarnation)) {
        return { refusal: rowConflict(table, inputs, describeHolder(inputs, record)) };
      }
      if (made !== undefined) return {};
      if (record === undefined) {
        if (!(await isThere(table, inputs))) return {};
        const creation = isRecorded ? "" : `${await creationSql(connection)} `; // the first write would have made it
        return { refusal: rowConflict(table, inputs, describeUnmanaged(table, inputs, creation)) };
      }
      if (!(await isThere(table, inputs))) return {};
      const [difference] = await compareRows(table, [inputs]);
      return { live: difference?.live ?? {} };
    });
  } catch (error) {
    const isKnown =
      error instanceof ClassifiedError && (error.errorClass === "terminal" || OF_TABLE.includes(error.reason));
    if (!isKnown) throw error;
    return { refusal: error };
  }
}

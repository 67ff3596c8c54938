import { parseTableName } from "./identifier";
import { describeHolder, describeUnmanaged, findRecord, mayClaim, rowConflict } from "./ownership";
import { withReadTransaction } from "./pool";
import { hasRecords } from "./records";
import type { RowInputs } from "./row-inputs";
import { isThere } from "./suppressed-write";
import { findTable } from "./tables";

/**
 * Why a row would be refused with `RowConflict`, found by looking alone; `undefined` when nothing is in its way.
 *
 * @param owners UIDs under which the row may be recorded
 * @param incarnation that of the row in the state; absent for a row that is yet to be created
 * @throws ClassifiedError when it cannot be told
 */
export function findRowConflict(
  inputs: RowInputs,
  { owners, incarnation }: { owners: readonly string[]; incarnation?: string },
): Promise<string | undefined> {
  return withReadTransaction(async (connection) => {
    const table = await findTable(connection, parseTableName(inputs.table, "table"));
    if (table === undefined) return undefined; // a table that does not exist has no rows
    const record = (await hasRecords(connection)) ? await findRecord(table, inputs) : undefined;
    if (record !== undefined) {
      if (mayClaim(record, inputs.owner, owners, incarnation)) return undefined;
      return rowConflict(table, inputs, describeHolder(inputs, record)).message;
    }
    if (incarnation !== undefined) return undefined;
    return (await isThere(table, inputs))
      ? rowConflict(table, inputs, describeUnmanaged(table, inputs)).message
      : undefined;
  });
}

import type { Properties } from "../provider";
import { recordsOf } from "./ownership";
import { withConnection } from "./pool";
import { type RowOutputs, rows } from "./row";

/**
 * Deletes the rows that an owner has by the records, except those of these resources: what an update made that was cut
 * off before its state was saved.
 *
 * @param column the key column of all that the owner ever had
 * @param kept the outputs of all resources that the owner is to have
 * @param options with `release`, the rows are kept, unmanaged
 */
export async function removeOrphanRows(
  owner: { uid: string; description: string },
  column: string,
  kept: readonly Properties[],
  { release }: { release: boolean },
): Promise<void> {
  const incarnations = new Set(kept.map(({ incarnation }) => incarnation));
  const records = await withConnection((connection) => recordsOf(connection, owner.uid));
  for (const { schema, name, key, incarnation } of records) {
    if (incarnations.has(incarnation)) continue;
    const outs: RowOutputs = {
      table: name,
      key: { [column]: key },
      values: {},
      owner,
      location: { schema, name },
      incarnation,
    };
    await (release ? rows.release : rows.delete)("", outs);
  }
}

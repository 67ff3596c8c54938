/* `kindstack/providers/postgres`: rows of PostgreSQL as resources, and their drift. */

export { findDriftedRows } from "./drift";
export { parseTableName, refuseTableName } from "./identifier";
export { Row, removeUntrackedRows } from "./row";
export type { RowInputs } from "./row-inputs";

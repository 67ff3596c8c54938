/* `kindstack/providers/postgres`: rows of PostgreSQL as resources, and their drift. */

export { refuseTableName } from "./allow-list";
export { findDriftedRows } from "./drift";
export { parseTableName } from "./identifier";
export { Row, removeOrphanRows } from "./row";
export type { RowInputs } from "./row-inputs";

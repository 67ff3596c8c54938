import { describeDependencies } from "./dependencies";

describeDependencies({
  awayMs: 4_000,
  statementMs: 500,
  rows: 3,
  attempts: { api: 200, database: 60, write: 10 },
});

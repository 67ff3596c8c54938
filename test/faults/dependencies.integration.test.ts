import { describeDependencies } from "./dependencies";

describeDependencies({
  isLong: false,
  awayMs: 1_500,
  statementMs: 300,
  rows: 3,
  attempts: { api: 100, database: 20, refused: 6 },
  note: () => {},
});

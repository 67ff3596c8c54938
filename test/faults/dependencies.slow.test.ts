import { describeDependencies } from "./dependencies";

describeDependencies({
  isLong: true,
  awayMs: 60_000,
  statementMs: 5_000,
  rows: 30,
  attempts: { api: 250, database: 120, refused: 20 },
  note: (text) => console.log(text),
});

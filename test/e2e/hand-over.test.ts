import { postgresWriter } from "../../stacks/kinds/postgres-writer/kind";
import { describeHandOver } from "./hand-over";

// A kind with rows; `hand-over.slow.test.ts` has the others.
describeHandOver([
  {
    kind: postgresWriter,
    specOf: () => ({ table: "students", name: "alex", age: 23, country: "canada" }),
    count: 1,
  },
]);

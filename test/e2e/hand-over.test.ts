import { memcached } from "../../stacks/kinds/memcached/kind";
import { postgresWriter } from "../../stacks/kinds/postgres-writer/kind";
import { describeHandOver } from "./hand-over";

// A kind with Kubernetes objects and one with rows; `hand-over.slow.test.ts` has the others.
describeHandOver([
  { kind: memcached, specOf: () => ({ size: 2 }), count: 1 },
  {
    kind: postgresWriter,
    specOf: () => ({ table: "students", name: "alex", age: 23, country: "canada" }),
    count: 1,
  },
]);

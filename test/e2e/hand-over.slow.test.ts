import { memcached } from "../../stacks/kinds/memcached/kind";
import { podSet } from "../../stacks/kinds/podset/kind";
import { tenant } from "../../stacks/kinds/tenant/kind";
import { describeHandOver } from "./hand-over";

describeHandOver([
  {
    kind: tenant,
    specOf: (name) => ({ adminEmail: "a@example.com", adminGroups: ["x"], namespaces: [name] }),
    count: 2,
  },
  { kind: memcached, specOf: () => ({ size: 2 }), count: 1 },
  { kind: podSet, specOf: () => ({ replicas: 2 }), count: 2 },
]);

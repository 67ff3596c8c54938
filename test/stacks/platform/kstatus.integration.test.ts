import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";
import type { LiveObject } from "../../../providers/kubernetes/client";
import { resolveBinary } from "../../../src/toolchain/resolve";
import { tenantObject, withConditions } from "../../objects";
import { testTools } from "../../tools";

const ready = withConditions(tenantObject(), { Ready: ["True", "Succeeded"] });
const TABLE: [string, LiveObject, string][] = [
  ["Ready", ready, "Current"],
  ["changed since", { ...ready, metadata: { ...ready.metadata, generation: 2 } }, "InProgress"],
  [
    "being created",
    withConditions(tenantObject(), { Ready: ["Unknown", "Creating"], Reconciling: ["True", "Creating"] }),
    "InProgress",
  ],
  [
    "failed and retried",
    withConditions(tenantObject(), { Ready: ["False", "Unreachable"], Reconciling: ["True", "Retrying"] }),
    "InProgress",
  ],
  [
    "stalled",
    withConditions(tenantObject(), { Ready: ["False", "Conflict"], Stalled: ["True", "Conflict"] }),
    "Failed",
  ],
  [
    "being deleted",
    { ...ready, metadata: { ...ready.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } },
    "Terminating",
  ],
];

it("kstatus, which Flux goes by, reads the state of an object from its conditions", async () => {
  const path = await resolveBinary(testTools.kstatus);
  const objects = TABLE.map(([, object]) => object);
  const statuses = JSON.parse(execFileSync(path, { input: JSON.stringify(objects), encoding: "utf8" })) as string[];

  expect(TABLE.map(([state], index) => [state, statuses[index]])).toEqual(
    TABLE.map(([state, , status]) => [state, status]),
  );
});

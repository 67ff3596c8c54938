import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";
import type { LiveObject } from "../../../providers/kubernetes/client";
import { resolveBinary } from "../../../src/toolchain/resolve";
import { customResourceDefinition } from "../../../stacks/contract/crd";
import { tenant } from "../../../stacks/kinds/tenant/kind";
import { tenantObject, withConditions } from "../../objects";
import { testTools } from "../../tools";

const tenantWith = (...conditions: Parameters<typeof withConditions>[1][]) =>
  withConditions<LiveObject>(tenantObject(), ...conditions);

const ready = tenantWith("Ready=True Succeeded");
/** The API server fills in the defaults of the CRD. */
const unseen: LiveObject = { ...tenantObject(), status: defaultStatus() };
function defaultStatus(): unknown {
  const { versions } = customResourceDefinition(tenant).spec as {
    versions: { schema: { openAPIV3Schema: { properties: { status: { default?: unknown } } } } }[];
  };
  return versions[0]?.schema.openAPIV3Schema.properties.status.default;
}
const TABLE: [string, LiveObject, string][] = [
  ["Ready", ready, "Current"],
  ["that no operator has seen, as the CRD's default has it", unseen, "InProgress"],
  [
    "whose resources do not work yet",
    tenantWith("Ready=False Progressing", "Synced=True Succeeded", "Reconciling=True Progressing"),
    "InProgress",
  ],
  [
    "whose resources have failed",
    tenantWith("Ready=False ResourceFailed", "Synced=True Succeeded", "Stalled=True ResourceFailed"),
    "Failed",
  ],
  [
    "in conflict over a field",
    tenantWith("Ready=False FieldConflict", "Synced=False FieldConflict", "FieldConflict=True RepairsReverted"),
    "InProgress",
  ],
  ["only observed, and would change", tenantWith("Ready=True Succeeded", "Synced=False Observed"), "Current"],
  ["only observed, and never applied", tenantWith("Ready=False Observed", "Synced=False Observed"), "InProgress"],
  ["Ready, with a plan that waits", tenantWith("Ready=True Succeeded", "Synced=False WaitsForApproval"), "Current"],
  [
    "never applied, with a plan that waits",
    tenantWith("Ready=False WaitsForApproval", "Synced=False WaitsForApproval"),
    "InProgress",
  ],
  [
    "paused and being deleted",
    {
      ...tenantWith("Ready=True Succeeded", "Paused=True Paused"),
      metadata: { ...tenantObject().metadata, deletionTimestamp: "2026-01-01T00:00:00Z" },
    },
    "Terminating",
  ],
  ["changed since", { ...ready, metadata: { ...ready.metadata, generation: 2 } }, "InProgress"],
  ["being created", tenantWith("Ready=Unknown Creating", "Reconciling=True Creating"), "InProgress"],
  ["failed and retried", tenantWith("Ready=False Unreachable", "Reconciling=True Retrying"), "InProgress"],
  ["stalled", tenantWith("Ready=False Conflict", "Stalled=True Conflict"), "Failed"],
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

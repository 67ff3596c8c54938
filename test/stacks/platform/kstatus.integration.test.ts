import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";
import type { LiveObject } from "../../../providers/kubernetes/client";
import { resolveBinary } from "../../../src/toolchain/resolve";
import { customResourceDefinition } from "../../../stacks/contract/crd";
import { tenant } from "../../../stacks/kinds/tenant/kind";
import { tenantObject, withConditions } from "../../objects";
import { testTools } from "../../tools";

const ready = withConditions<LiveObject>(tenantObject(), "Ready=True Succeeded");
const changed = (object: LiveObject, metadata: object) => ({
  ...object,
  metadata: { ...object.metadata, ...metadata },
});
const deleted = { deletionTimestamp: "2026-01-01T00:00:00Z" };
const paused = withConditions<LiveObject>(tenantObject(), "Ready=True Succeeded", "Paused=True Paused");
/** The API server fills in the defaults of the CRD. */
const unseen: LiveObject = { ...tenantObject(), status: defaultStatus() };
function defaultStatus(): unknown {
  const { versions } = customResourceDefinition(tenant).spec as {
    versions: { schema: { openAPIV3Schema: { properties: { status: { default?: unknown } } } } }[];
  };
  return versions[0]?.schema.openAPIV3Schema.properties.status.default;
}

type Told = Parameters<typeof withConditions>[1];
/** What an object's conditions say, and what kstatus reads in them. */
const CONDITIONS: [string, string, ...Told[]][] = [
  ["Ready", "Current", "Ready=True Succeeded"],
  ["not working", "InProgress", "Ready=False Progressing", "Synced=True Succeeded", "Reconciling=True Progressing"],
  ["failed", "Failed", "Ready=False ResourceFailed", "Synced=True Succeeded", "Stalled=True ResourceFailed"],
  ["contested", "InProgress", "Ready=False FieldConflict", "Synced=False FieldConflict", "FieldConflict=True Reverted"],
  ["only observed, and would change", "Current", "Ready=True Succeeded", "Synced=False Observed"],
  ["only observed, and never applied", "InProgress", "Ready=False Observed", "Synced=False Observed"],
  ["Ready, with a plan that waits", "Current", "Ready=True Succeeded", "Synced=False WaitsForApproval"],
  ["new, with a plan that waits", "InProgress", "Ready=False WaitsForApproval", "Synced=False WaitsForApproval"],
  ["being created", "InProgress", "Ready=Unknown Creating", "Reconciling=True Creating"],
  ["failed and retried", "InProgress", "Ready=False Unreachable", "Reconciling=True Retrying"],
  ["stalled", "Failed", "Ready=False Conflict", "Stalled=True Conflict"],
];
const TABLE: [string, string, LiveObject][] = [
  ...CONDITIONS.map(([state, status, ...told]): [string, string, LiveObject] => [
    ...([state, status] as const),
    withConditions<LiveObject>(tenantObject(), ...told),
  ]),
  ["that no operator has seen, as the CRD's default has it", "InProgress", unseen],
  ["paused and being deleted", "Terminating", changed(paused, deleted)],
  ["changed since", "InProgress", changed(ready, { generation: 2 })],
  ["being deleted", "Terminating", changed(ready, deleted)],
];

it("kstatus, which Flux goes by, reads the state of an object from its conditions", async () => {
  const path = await resolveBinary(testTools.kstatus);
  const objects = TABLE.map(([, , object]) => object);
  const statuses = JSON.parse(execFileSync(path, { input: JSON.stringify(objects), encoding: "utf8" })) as string[];

  expect(TABLE.map(([state], index) => [state, statuses[index]])).toEqual(TABLE.map((row) => row.slice(0, 2)));
});

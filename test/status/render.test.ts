import { expect, it } from "vitest";
import { countObjects } from "../../src/status/object-counts";
import type { Overview } from "../../src/status/overview";
import { renderOverview } from "../../src/status/render";
import { tenant } from "../../stacks/kinds/tenant/kind";
import { tenantObject, withConditions } from "../objects";

const named = (name: string) => tenantObject({}, { name });
const overview: Overview = {
  kinds: [
    countObjects(tenant, [
      withConditions(named("a"), "Synced=True Succeeded", "Ready=True Succeeded"),
      withConditions(named("b"), "Ready=False Conflict", "Stalled=True Conflict"),
      withConditions(named("u"), "Synced=True Succeeded", "Ready=True Succeeded", "DriftUnknown=True TableMissing"),
      ...["c", "d", "e", "f"].map((name) => withConditions(named(name), "Ready=False Unreachable")),
      named("\u001b[31mg"),
    ]),
    { kind: "podsets.batch.tutorial.kubebuilder.io", error: "not installed" },
  ],
  operator: { error: "http://127.0.0.1:8080/metrics: connect ECONNREFUSED" },
  shards: [
    { lease: "kindstack-shard-0", holder: "kindstack-abc" },
    { lease: "kindstack-shard-1", holder: null },
  ],
  events: [
    { time: "2026-01-01T00:00:00.123Z", type: "Warning", object: "Tenant b", reason: "Conflict", note: "n", count: 2 },
  ],
};

it("the overview counts objects by kind and by reason, most frequent first, and has no effect on a terminal", () => {
  const lines = renderOverview(overview).split("\n");
  const cells = lines.map((line) => line.split(/ {2,}/));
  expect(cells).toContainEqual(["tenants.multitenancy.codereliant.io", "8", "2", "2", "6", "0", "1", "1", "0", "0"]);
  expect(cells).toContainEqual(["podsets.batch.tutorial.kubebuilder.io", "not installed"]);
  const reasons = cells.filter(([kind]) => kind?.startsWith("tenants")).map(([, reason, objects]) => [reason, objects]);
  expect(reasons.slice(1)).toEqual([
    ["Unreachable", "4"],
    ["Conflict", "1"],
    ["Pending", "1"],
  ]);
  expect(lines.join("\n")).toContain("c, d, e, …");
  expect(lines.join("\n")).toContain("\\u001b[31mg");
});

it("what could not be read is said in its place", () => {
  const text = renderOverview({ ...overview, events: { error: "forbidden" }, shards: [] });
  expect(text).toContain(
    "The operator's metrics could not be read: http://127.0.0.1:8080/metrics: connect ECONNREFUSED",
  );
  expect(text).toContain("The Events could not be read: forbidden");
  expect(text).toContain("No Leases of shards");
});

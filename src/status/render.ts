import { shortened } from "../../providers/shortened";
import { renderTable } from "../text/table";
import type { KindCounts } from "./object-counts";
import type { OperatorStatus } from "./operator-status";
import type { Overview } from "./overview";

const NONE = "-";
const SHOWN_STATES = ["Reconciling", "Stalled", "DriftUnknown", "Paused", "Deleting"] as const;

/** For a terminal: control characters from objects and servers are escaped. */
export function renderOverview({ kinds, operator, shards, events }: Overview): string {
  const notReady = kinds.flatMap((kind) => ("error" in kind ? [] : reasonRows(kind)));
  return [
    renderTable(["kind", "objects", "synced", "ready", "not ready", ...SHOWN_STATES], kinds.map(kindRow)),
    ...(notReady.length === 0 ? [] : [renderTable(["not ready", "reason", "objects", "such as"], notReady)]),
    "error" in operator
      ? `The operator's metrics could not be read: ${operator.error}\n(--metrics-url says where they are)`
      : renderTable(["operator", ""], operatorRows(operator)),
    "error" in shards
      ? `The shards' Leases could not be read: ${shards.error}`
      : tableOr(
          `No Leases of shards: ${"error" in operator ? "no operator runs, or one" : "the operator runs"} without leader election.`,
          ["shard", "held by"],
          shards.map(({ lease, holder }) => [lease, holder ?? NONE]),
        ),
    "error" in events
      ? `The Events could not be read: ${events.error}`
      : tableOr(
          "No Events of the operator in the last hour.",
          ["last seen", "type", "object", "reason", "note"],
          events.map(({ time, type, object, reason, note, count }) => [
            time.replace(/\.\d+Z$/, "Z"),
            type,
            object,
            reason,
            `${count > 1 ? `(${count}×) ` : ""}${shortened(note, 80)}`,
          ]),
        ),
  ].join("\n\n");
}

function tableOr(none: string, columns: readonly string[], rows: readonly (readonly unknown[])[]): string {
  return rows.length === 0 ? none : renderTable(columns, rows);
}

function kindRow(kind: Overview["kinds"][number]): unknown[] {
  if ("error" in kind) return [kind.kind, kind.error];
  const { objects, synced, ready, states } = kind;
  return [kind.kind, objects, synced, ready, objects - ready, ...SHOWN_STATES.map((state) => states[state])];
}

function reasonRows({ kind, notReady }: KindCounts): unknown[][] {
  return notReady.map(({ reason, objects, examples }) => {
    const more = objects > examples.length ? ", …" : "";
    return [kind, reason, objects, `${examples.join(", ")}${more}`];
  });
}

function operatorRows({ startedAt, memoryBytes, queue, updates, rollout, ...rest }: OperatorStatus): string[][] {
  return [
    ["running since", startedAt],
    ["memory", `${Math.round(memoryBytes / 2 ** 20)} MiB`],
    ["queue", `${queue.waiting} waiting, ${queue.running} running, ${queue.workers} workers`],
    ["time in the queue", `90 % below ${seconds(queue.waitP90)}`],
    ["updates", `${updates.succeeded} succeeded, ${updates.failed} failed, ${updates.interrupted} interrupted`],
    ["time of an update", `50 % below ${seconds(updates.durationP50)}, 90 % below ${seconds(updates.durationP90)}`],
    [
      "rollout",
      `${rollout.waiting} waiting, ${rollout.updating} updating, ${rollout.failed} failed${rollout.stopped > 0 ? ", stopped" : ""}`,
    ],
    ["drift corrected", `${rest.driftRepairs} times`],
    ["shards held", String(rest.shardsHeld)],
    ["API server", `heard of ${rest.lastContact.toFixed(0)} s ago`],
  ];
}

function seconds(value: number | null): string {
  if (value === null) return NONE;
  return value < 1 ? `${Math.round(value * 1000)} ms` : `${value.toFixed(1)} s`;
}

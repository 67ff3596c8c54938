import { renderTable } from "../text/table";
import type { OperatorStatus } from "./operator-status";
import type { Overview } from "./overview";

const NONE = "-";

/** For a terminal; no word of objects and servers has an effect there. */
export function renderOverview({ kinds, operator, shards, events }: Overview): string {
  const counted = kinds.flatMap((kind) => ("error" in kind ? [] : [kind]));
  const notReady = counted.flatMap(({ kind, notReady }) =>
    notReady.map(({ reason, objects, examples }) => {
      const more = objects > examples.length ? ", …" : "";
      return [kind, reason, objects, `${examples.join(", ")}${more}`];
    }),
  );
  return [
    renderTable(
      ["kind", "objects", "ready", "not ready", "reconciling", "stalled", "paused", "deleting"],
      kinds.map((kind) => {
        if ("error" in kind) return [kind.kind, kind.error];
        const { objects, ready, states } = kind;
        return [
          kind.kind,
          objects,
          ready,
          objects - ready,
          states.Reconciling,
          states.Stalled,
          states.Paused,
          states.Deleting,
        ];
      }),
    ),
    ...(notReady.length === 0 ? [] : [renderTable(["not ready", "reason", "objects", "such as"], notReady)]),
    "error" in operator
      ? `The operator's metrics could not be read: ${operator.error}\n(--metrics-url says where they are)`
      : renderTable(["operator", ""], operatorRows(operator)),
    "error" in shards
      ? `The shards' Leases could not be read: ${shards.error}`
      : shards.length > 0
        ? renderTable(
            ["shard", "held by"],
            shards.map(({ lease, holder }) => [lease, holder ?? NONE]),
          )
        : "error" in operator
          ? "No Leases of shards: no operator runs, or one without leader election."
          : "No Leases of shards: the operator runs without leader election.",
    "error" in events
      ? `The Events could not be read: ${events.error}`
      : events.length > 0
        ? renderTable(
            ["last seen", "type", "object", "reason", "note"],
            events.map(({ time, type, object, reason, note, count }) => [
              time.replace(/\.\d+Z$/, "Z"),
              type,
              object,
              reason,
              `${count > 1 ? `(${count}×) ` : ""}${note.length > 80 ? `${note.slice(0, 79)}…` : note}`,
            ]),
          )
        : "No Events of the operator in the last hour.",
  ].join("\n\n");
}

function operatorRows({ startedAt, memoryBytes, queue, updates, ...rest }: OperatorStatus): [string, string][] {
  const { succeeded, failed, interrupted, durationP50, durationP90 } = updates;
  return [
    ["running since", startedAt],
    ["memory", `${Math.round(memoryBytes / 2 ** 20)} MiB`],
    ["queue", `${queue.waiting} waiting, ${queue.running} running, ${queue.workers} workers`],
    ["time in the queue", `90 % below ${seconds(queue.waitP90)}`],
    ["updates", `${succeeded} succeeded, ${failed} failed, ${interrupted} interrupted`],
    ["time of an update", `50 % below ${seconds(durationP50)}, 90 % below ${seconds(durationP90)}`],
    [
      "rollout",
      `${rest.rollout.waiting} waiting, ${rest.rollout.updating} updating, ${rest.rollout.failed} failed` +
        `${rest.rollout.stopped > 0 ? ", stopped" : ""}`,
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

const DATASOURCE = { type: "prometheus", uid: "$datasource" };
const KIND = 'kind=~"$kind"';

/** The operator at a glance, as a Grafana dashboard: objects, updates, queue, shards and processes. */
export function dashboard() {
  const stats = [
    stat("Objects", `sum(max by (kind, synced, ready, reason) (kindstack_objects{${KIND}}))`),
    stat("Not Ready", `sum(max by (kind, synced, ready, reason) (kindstack_objects{${KIND},ready!="True"}))`, "orange"),
    stat("Stalled", `sum(max by (kind) (kindstack_object_states{${KIND},state="Stalled"}))`, "red"),
    stat("Paused", `sum(max by (kind) (kindstack_object_states{${KIND},state="Paused"}))`, "blue"),
    stat("In the queue", 'sum(workqueue_depth{name="kindstack"})'),
    stat("Shards held", "sum(kindstack_shards_held)"),
  ];
  const graphs = [
    graph("Objects by kind", "short", {
      "{{kind}}": `sum by (kind) (max by (kind, synced, ready, reason) (kindstack_objects{${KIND}}))`,
    }),
    graph("Not Ready, by reason", "short", {
      "{{kind}} {{reason}}, synced: {{synced}}": `max by (kind, synced, reason) (kindstack_objects{${KIND},ready!="True"}) > 0`,
    }),
    graph("Updates", "ops", rates("kindstack_updates_total", KIND, "operation", "result")),
    graph("Duration of updates", "s", quantiles("kindstack_update_duration_seconds", KIND)),
    graph("Resources changed", "ops", rates("kindstack_resource_operations_total", KIND, "operation")),
    graph("Drift corrected", "ops", rates("kindstack_drift_repairs_total", KIND, "kind")),
    graph("Queue", "short", {
      waiting: 'sum(workqueue_depth{name="kindstack"})',
      "being reconciled": "sum(controller_runtime_active_workers)",
      "workers of a replica": "max(controller_runtime_max_concurrent_reconciles)",
    }),
    graph("Time in the queue", "s", quantiles("workqueue_queue_duration_seconds", 'name="kindstack"')),
    graph("Reconciles", "ops", rates("controller_runtime_reconcile_total", 'controller=~"$kind"', "result")),
    graph("Last contact with the API server", "s", {
      "{{resource}}": "max by (resource) (kindstack_informer_last_contact_seconds)",
    }),
    graph("Memory", "bytes", { "{{pod}}": 'process_resident_memory_bytes{job="kindstack"}' }),
    graph("CPU", "short", { "{{pod}}": 'rate(process_cpu_seconds_total{job="kindstack"}[$__rate_interval])' }),
  ];
  return {
    uid: "kindstack",
    title: "Kindstack",
    tags: ["kindstack"],
    schemaVersion: 39,
    editable: true,
    refresh: "30s",
    time: { from: "now-6h", to: "now" },
    templating: {
      list: [
        { name: "datasource", type: "datasource", query: "prometheus", label: "Data source" },
        {
          name: "kind",
          type: "query",
          label: "Kind",
          datasource: DATASOURCE,
          query: { query: "label_values(kindstack_objects, kind)", refId: "kind" },
          includeAll: true,
          allValue: ".*",
          multi: true,
          current: { text: "All", value: "$__all" },
          refresh: 2,
        },
      ],
    },
    // One row of numbers, then two graphs in each row; a row is 24 units wide.
    panels: [
      ...stats.map((panel, index) => ({ ...panel, gridPos: { x: 4 * index, y: 0, w: 4, h: 4 } })),
      ...graphs.map((panel, index) => ({
        ...panel,
        gridPos: { x: 12 * (index % 2), y: 4 + 8 * Math.floor(index / 2), w: 12, h: 8 },
      })),
    ].map((panel, index) => ({ id: index + 1, ...panel })),
  };
}

/** What is drawn, by its legend. */
type Queries = Record<string, string>;

/** How often a counter grows, for each value of these labels. */
function rates(counter: string, selector: string, ...labels: string[]): Queries {
  const legend = labels.map((label) => `{{${label}}}`).join(" ");
  return { [legend]: `sum by (${labels.join(", ")}) (rate(${counter}{${selector}}[$__rate_interval]))` };
}

function quantiles(histogram: string, selector: string): Queries {
  const buckets = `sum by (le) (rate(${histogram}_bucket{${selector}}[$__rate_interval]))`;
  return { median: `histogram_quantile(0.5, ${buckets})`, "99 %": `histogram_quantile(0.99, ${buckets})` };
}

function stat(title: string, expr: string, colour = "green") {
  const steps = [
    { color: "green", value: null },
    { color: colour, value: 1 },
  ];
  return panel("stat", title, { "": expr }, { thresholds: { mode: "absolute", steps } });
}

function graph(title: string, unit: string, queries: Queries) {
  return panel("timeseries", title, queries, { unit, min: 0 });
}

function panel(type: "stat" | "timeseries", title: string, queries: Queries, defaults: object) {
  const targets = Object.entries(queries).map(([legendFormat, expr], index) => ({
    expr,
    legendFormat,
    refId: String.fromCharCode("A".charCodeAt(0) + index),
  }));
  return { type, title, datasource: DATASOURCE, targets, fieldConfig: { defaults, overrides: [] } };
}

/** A Grafana dashboard, as far as it is written here. */
export interface Dashboard {
  uid: string;
  title: string;
  panels: Panel[];
  [field: string]: unknown;
}

interface Panel {
  title: string;
  targets: { expr: string; legendFormat: string; refId: string }[];
  [field: string]: unknown;
}

const COLUMNS = 24;
const HEIGHT = 8;
const DATASOURCE = { type: "prometheus", uid: "$datasource" };

/** The operator at a glance: objects, updates, queue, shards and processes. */
export function dashboard(): Dashboard {
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
    panels: arranged([
      stat("Objects", 'sum(max by (kind, ready, reason) (kindstack_objects{kind=~"$kind"}))'),
      stat("Not Ready", 'sum(max by (kind, ready, reason) (kindstack_objects{kind=~"$kind",ready!="True"}))', "orange"),
      stat("Stalled", 'sum(max by (kind) (kindstack_object_states{kind=~"$kind",state="Stalled"}))', "red"),
      stat("Paused", 'sum(max by (kind) (kindstack_object_states{kind=~"$kind",state="Paused"}))', "blue"),
      stat("In the queue", 'sum(workqueue_depth{name="kindstack"})'),
      stat("Shards held", "sum(kindstack_shards_held)"),
      graph("Objects by kind", "short", [
        ['sum by (kind) (max by (kind, ready, reason) (kindstack_objects{kind=~"$kind"}))', "{{kind}}"],
      ]),
      graph("Not Ready, by reason", "short", [
        ['max by (kind, reason) (kindstack_objects{kind=~"$kind",ready!="True"}) > 0', "{{kind}} {{reason}}"],
      ]),
      graph("Updates", "ops", [
        [
          'sum by (operation, result) (rate(kindstack_updates_total{kind=~"$kind"}[$__rate_interval]))',
          "{{operation}} {{result}}",
        ],
      ]),
      graph("Duration of updates", "s", [
        [quantile(0.5, "kindstack_update_duration_seconds", 'kind=~"$kind"'), "median"],
        [quantile(0.99, "kindstack_update_duration_seconds", 'kind=~"$kind"'), "99 %"],
      ]),
      graph("Resources changed", "ops", [
        [
          'sum by (operation) (rate(kindstack_resource_operations_total{kind=~"$kind"}[$__rate_interval]))',
          "{{operation}}",
        ],
      ]),
      graph("Drift corrected", "ops", [
        ['sum by (kind) (rate(kindstack_drift_repairs_total{kind=~"$kind"}[$__rate_interval]))', "{{kind}}"],
      ]),
      graph("Queue", "short", [
        ['sum(workqueue_depth{name="kindstack"})', "waiting"],
        ["sum(controller_runtime_active_workers)", "being reconciled"],
        ["max(controller_runtime_max_concurrent_reconciles)", "workers of a replica"],
      ]),
      graph("Time in the queue", "s", [
        [quantile(0.5, "workqueue_queue_duration_seconds", 'name="kindstack"'), "median"],
        [quantile(0.99, "workqueue_queue_duration_seconds", 'name="kindstack"'), "99 %"],
      ]),
      graph("Reconciles", "ops", [
        [
          'sum by (result) (rate(controller_runtime_reconcile_total{controller=~"$kind"}[$__rate_interval]))',
          "{{result}}",
        ],
      ]),
      graph("Last contact with the API server", "s", [
        ["max by (resource) (kindstack_informer_last_contact_seconds)", "{{resource}}"],
      ]),
      graph("Memory", "bytes", [['process_resident_memory_bytes{job="kindstack"}', "{{pod}}"]]),
      graph("CPU", "short", [['rate(process_cpu_seconds_total{job="kindstack"}[$__rate_interval])', "{{pod}}"]]),
    ]),
  };
}

function quantile(q: number, histogram: string, selector: string): string {
  return `histogram_quantile(${q}, sum by (le) (rate(${histogram}_bucket{${selector}}[$__rate_interval])))`;
}

function stat(title: string, expr: string, colour = "green"): Panel {
  return {
    type: "stat",
    title,
    datasource: DATASOURCE,
    targets: [{ expr, legendFormat: "", refId: "A" }],
    fieldConfig: {
      defaults: {
        thresholds: {
          mode: "absolute",
          steps: [
            { color: "green", value: null },
            { color: colour, value: 1 },
          ],
        },
      },
      overrides: [],
    },
    size: { w: 4, h: 4 },
  };
}

function graph(title: string, unit: string, queries: readonly (readonly [expr: string, legend: string])[]): Panel {
  return {
    type: "timeseries",
    title,
    datasource: DATASOURCE,
    targets: queries.map(([expr, legendFormat], index) => ({
      expr,
      legendFormat,
      refId: String.fromCharCode("A".charCodeAt(0) + index),
    })),
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    size: { w: COLUMNS / 2, h: HEIGHT },
  };
}

/** Gives each panel its place, from left to right and from top to bottom. */
function arranged(panels: Panel[]): Panel[] {
  let [x, y, rowHeight] = [0, 0, 0];
  return panels.map(({ size, ...panel }, index) => {
    const { w, h } = size as { w: number; h: number };
    if (x + w > COLUMNS) [x, y, rowHeight] = [0, y + rowHeight, 0];
    const gridPos = { x, y, w, h };
    [x, rowHeight] = [x + w, Math.max(rowHeight, h)];
    return { id: index + 1, ...panel, gridPos } as Panel;
  });
}

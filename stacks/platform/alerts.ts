/** The headings of this page are the names of the alerts. */
const RUNBOOK = "docs/alerts.md";

const critical = ruleOf("critical");
const warning = ruleOf("warning");

/**
 * The alerts of an operator: the spec of a PrometheusRule. Every replica counts all objects, so these are compared by `max`
 * and not added up.
 */
export function alertingRules() {
  const rules = [
    critical("KindstackDown", "absent(kindstack_shards_held)", "10m", "No operator answers Prometheus."),
    critical(
      "KindstackShardsNotHeld",
      "sum(kindstack_shards_held) < max(kindstack_shards)",
      "5m",
      "Only {{ $value }} shards have an operator; objects of the others are not reconciled.",
    ),
    critical(
      "KindstackBackendRefused",
      "max by (reason) (kindstack_backend_refused) > 0",
      "1m",
      "An operator updates and deletes nothing, as the state's backend is not, or may not be, its own: {{ $labels.reason }}.",
    ),
    critical(
      "KindstackInformerSilent",
      "max by (resource) (kindstack_informer_last_contact_seconds) > 180",
      "5m",
      "No contact with the API server for {{ $value | humanizeDuration }} in the watch of {{ $labels.resource }}.",
    ),
    critical(
      "KindstackStateMissing",
      'max by (kind) (kindstack_objects{reason="StateMissing"}) > 0',
      "5m",
      "The backend lacks the stacks of {{ $value }} {{ $labels.kind }}: nothing is made or deleted for them.",
    ),
    warning(
      "KindstackObjectsStalled",
      'max by (kind) (kindstack_object_states{state="Stalled"}) > 0',
      "15m",
      "{{ $value }} {{ $labels.kind }} are stalled: they are not retried until the object, or what blocks it, changes.",
    ),
    warning(
      "KindstackObjectsNotSynced",
      'max by (kind, reason) (kindstack_objects{synced!="True",ready!="True",reason!~"Observed|Paused|StateMissing|WaitsForApproval"}) > 0',
      "1h",
      "The stacks of {{ $value }} {{ $labels.kind }} have not been as specified for an hour: {{ $labels.reason }}.",
    ),
    warning(
      "KindstackObjectsNotReady",
      'max by (kind, reason) (kindstack_objects{synced="True",ready!="True"}) > 0',
      "1h",
      "{{ $value }} {{ $labels.kind }} are as specified, but what they made has not worked for an hour: {{ $labels.reason }}.",
    ),
    warning(
      "KindstackDriftUnknown",
      'max by (kind) (kindstack_object_states{state="DriftUnknown"}) > 0',
      "15m",
      "{{ $value }} {{ $labels.kind }} cannot be compared with what they made: manual changes are not noticed.",
    ),
    warning(
      "KindstackModeLoosened",
      "time() - max by (kind) (kindstack_mode_loosened_timestamp_seconds) < 900",
      "0m",
      "A less strict mode holds for {{ $labels.kind }} than {{ $value | humanizeDuration }} ago: changes may be applied that were only observed.",
    ),
    warning(
      "KindstackPlansWait",
      'max(kindstack_plan_age_seconds{state="Pending"}) > 86400',
      "5m",
      "A plan has waited for an approval for {{ $value | humanizeDuration }}.",
    ),
    warning(
      "KindstackUpdatesFailing",
      'sum by (kind) (rate(kindstack_updates_total{result="failed"}[15m])) / sum by (kind) (rate(kindstack_updates_total[15m])) > 0.5',
      "30m",
      "{{ $value | humanizePercentage }} of the updates of {{ $labels.kind }} fail.",
    ),
    warning(
      "KindstackRolloutStopped",
      "max by (kind) (kindstack_rollout_stopped) > 0",
      "5m",
      "The rollout of a new version to {{ $labels.kind }} has stopped: too many objects failed.",
    ),
    warning(
      "KindstackUpdatesSlow",
      "histogram_quantile(0.9, sum by (kind, le) (rate(kindstack_update_duration_seconds_bucket[30m]))) > 300",
      "30m",
      "A tenth of the updates of {{ $labels.kind }} take longer than {{ $value | humanizeDuration }}.",
    ),
    warning(
      "KindstackQueueDelayed",
      'histogram_quantile(0.9, sum by (le) (rate(workqueue_queue_duration_seconds_bucket{name="kindstack"}[15m]))) > 60',
      "30m",
      "A tenth of the objects wait longer than {{ $value | humanizeDuration }} for a worker.",
    ),
    warning(
      "KindstackDriftReturns",
      "sum by (kind) (increase(kindstack_drift_repairs_total[1h])) > 20",
      "1h",
      "Drift of {{ $labels.kind }} was corrected {{ $value | humanize }} times in an hour; another controller may undo it.",
    ),
  ];
  return { groups: [{ name: "kindstack", rules }] };
}

function ruleOf(severity: "critical" | "warning") {
  return (alert: string, expr: string, duration: string, summary: string) => ({
    alert,
    expr,
    for: duration,
    labels: { severity },
    annotations: { summary, runbook: `${RUNBOOK}#${alert.toLowerCase()}` },
  });
}

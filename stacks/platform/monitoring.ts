import type { Manifest } from "../../providers/kubernetes/client";
import { alertingRules } from "./alerts";
import type { Configuration } from "./configuration";
import { dashboard } from "./dashboard";
import { LABELS, NAME } from "./labels";

/** The alerts, for the Prometheus operator. */
export function prometheusRule(configuration: Pick<Configuration, "namespace" | "shards">): Manifest {
  return {
    apiVersion: "monitoring.coreos.com/v1",
    kind: "PrometheusRule",
    metadata: { name: NAME, namespace: configuration.namespace, labels: LABELS },
    spec: alertingRules(configuration),
  };
}

/** The alerts and the dashboard, where they are asked for. The sidecar of Grafana's chart loads ConfigMaps by this label. */
export function monitoring(configuration: Configuration): Manifest[] {
  const { namespace } = configuration;
  return [
    ...(configuration.prometheusRule ? [prometheusRule(configuration)] : []),
    ...(configuration.grafanaDashboard
      ? [
          {
            apiVersion: "v1",
            kind: "ConfigMap",
            metadata: { name: `${NAME}-dashboard`, namespace, labels: { ...LABELS, grafana_dashboard: "1" } },
            data: { "kindstack.json": JSON.stringify(dashboard()) },
          },
        ]
      : []),
  ];
}

import type { Manifest } from "../../providers/kubernetes/client";
import { alertingRules } from "./alerts";
import type { Configuration } from "./configuration";
import { dashboard } from "./dashboard";
import { LABELS, NAME, SELECTOR } from "./labels";

/** Objects for the Prometheus operator and Grafana, where these are installed. */
export function monitoring(configuration: Configuration): Manifest[] {
  return [
    ...(configuration.serviceMonitor ? [serviceMonitor(configuration)] : []),
    ...(configuration.prometheusRule ? [prometheusRule(configuration)] : []),
    ...(configuration.grafanaDashboard ? [dashboardConfigMap(configuration)] : []),
  ];
}

/** Prometheus shows the token of its service account, which must have the ClusterRole `kindstack-metrics-reader`. */
function serviceMonitor({ namespace, metricsSecret }: Configuration): Manifest {
  const endpoint = {
    port: "metrics",
    path: "/metrics",
    scheme: "https",
    bearerTokenFile: "/var/run/secrets/kubernetes.io/serviceaccount/token",
    tlsConfig:
      metricsSecret === undefined
        ? { insecureSkipVerify: true } // made at each start; clients cannot verify it
        : { serverName: `${NAME}.${namespace}.svc`, ca: { secret: { name: metricsSecret, key: "ca.crt" } } },
  };
  return {
    apiVersion: "monitoring.coreos.com/v1",
    kind: "ServiceMonitor",
    metadata: { name: NAME, namespace, labels: LABELS },
    spec: { selector: { matchLabels: SELECTOR }, endpoints: [endpoint] },
  };
}

export function prometheusRule({ namespace }: Pick<Configuration, "namespace">): Manifest {
  return {
    apiVersion: "monitoring.coreos.com/v1",
    kind: "PrometheusRule",
    metadata: { name: NAME, namespace, labels: LABELS },
    spec: alertingRules(),
  };
}

/** The sidecar of Grafana's chart loads ConfigMaps with this label. */
function dashboardConfigMap({ namespace }: Configuration): Manifest {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: `${NAME}-dashboard`, namespace, labels: { ...LABELS, grafana_dashboard: "1" } },
    data: { "kindstack.json": JSON.stringify(dashboard()) },
  };
}

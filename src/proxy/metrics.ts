import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

/** What the proxy counts. */
export interface ProxyMetrics {
  registry: Registry;
  /** `view`: user, own-namespaces, or none for what was refused. `type`: request, watch or upgrade. */
  requests: Counter<"view" | "type" | "code">;
  /** Seconds; of requests only, as watches and upgraded connections last as long as the client wants. */
  duration: Histogram<"view">;
  tokenReviews: Counter<"result">;
  droppedConnections: Counter;
  endedWatches: Counter;
}

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/**
 * Metrics in a registry of their own.
 *
 * @param resource the plural of the objects that are watched
 * @param ask what is asked at every scrape; `lastContact` by `performance.now()`
 */
export function createProxyMetrics(
  resource: string,
  ask: { connections: () => number; lastContact: () => number },
): ProxyMetrics {
  const registry = new Registry();
  const registers = [registry];
  // Its own precision, 10 ms, wakes the process a hundred times a second: more than all else that it does at rest.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 100 });
  new Gauge({
    name: "kindstack_proxy_connections",
    help: "Open connections of clients.",
    registers,
    collect() {
      this.set(ask.connections());
    },
  });
  new Gauge({
    name: "kindstack_informer_last_contact_seconds",
    help: "Time since the last contact with the API server in the list or watch of a resource.",
    labelNames: ["resource"],
    registers,
    collect() {
      this.set({ resource }, (performance.now() - ask.lastContact()) / 1000);
    },
  });
  return {
    registry,
    requests: new Counter({
      name: "kindstack_proxy_requests_total",
      help: "Requests that were answered, by how they were passed on.",
      labelNames: ["view", "type", "code"],
      registers,
    }),
    duration: new Histogram({
      name: "kindstack_proxy_request_duration_seconds",
      help: "How long requests took that are neither watches nor upgraded connections.",
      labelNames: ["view"],
      buckets: SECONDS,
      registers,
    }),
    tokenReviews: new Counter({
      name: "kindstack_proxy_token_reviews_total",
      help: "Tokens that the API server was asked about.",
      labelNames: ["result"],
      registers,
    }),
    droppedConnections: new Counter({
      name: "kindstack_proxy_dropped_connections_total",
      help: "Connections closed because there were too many; the oldest without a known user first.",
      registers,
    }),
    endedWatches: new Counter({
      name: "kindstack_proxy_ended_watches_total",
      help: "Watches of namespaces that were ended because their user's ownership changed.",
      registers,
    }),
  };
}

import { createInstruments } from "../telemetry/instruments";

export type ProxyMetrics = ReturnType<typeof createProxyMetrics>;

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** Metrics in a registry of their own. @param lastContact by `performance.now()`; asked at every scrape */
export function createProxyMetrics(resource: string, lastContact: () => number) {
  const { registry, counter, gauge, histogram, informer } = createInstruments();
  informer(resource, lastContact);
  return {
    registry,
    /** `view`: user, own-namespaces, or none for what was refused. `type`: request, watch or upgrade. */
    requests: counter(
      "kindstack_proxy_requests_total",
      ["view", "type", "code"],
      "Requests that were answered, by how they were passed on.",
    ),
    /** Watches and upgraded connections last as long as the client wants. */
    duration: histogram(
      "kindstack_proxy_request_duration_seconds",
      ["view"],
      "How long requests took that are neither watches nor upgraded connections.",
      SECONDS,
    ),
    /** `result`: authenticated, refused or failed. */
    tokenReviews: counter(
      "kindstack_proxy_token_reviews_total",
      ["result"],
      "Tokens that the API server was asked about.",
    ),
    connections: gauge("kindstack_proxy_connections", [], "Open connections of clients."),
    droppedConnections: counter(
      "kindstack_proxy_dropped_connections_total",
      [],
      "Connections closed because there were too many; the oldest without a known user first.",
    ),
    endedWatches: counter(
      "kindstack_proxy_ended_watches_total",
      [],
      "Watches of namespaces that were ended because their user's ownership changed.",
    ),
  };
}

import type { Counter, Histogram, Registry } from "prom-client";
import { createInstruments, observeLastContact } from "../telemetry/instruments";

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
  const { registry, counter, observed, histogram } = createInstruments();
  observed("kindstack_proxy_connections", "Open connections of clients.", [], (gauge) => gauge.set(ask.connections()));
  observeLastContact(observed, new Map([[resource, ask.lastContact]]));
  return {
    registry,
    requests: counter(
      "kindstack_proxy_requests_total",
      "Requests that were answered, by how they were passed on.",
      ...(["view", "type", "code"] as const),
    ),
    duration: histogram(
      "kindstack_proxy_request_duration_seconds",
      "How long requests took that are neither watches nor upgraded connections.",
      SECONDS,
      "view",
    ),
    tokenReviews: counter(
      "kindstack_proxy_token_reviews_total",
      "Tokens that the API server was asked about.",
      "result",
    ),
    droppedConnections: counter(
      "kindstack_proxy_dropped_connections_total",
      "Connections closed because there were too many; the oldest without a known user first.",
    ),
    endedWatches: counter(
      "kindstack_proxy_ended_watches_total",
      "Watches of namespaces that were ended because their user's ownership changed.",
    ),
  };
}

import fs from "node:fs/promises";
import type { KubeConfig } from "@kubernetes/client-node";
import type { Logger } from "pino";
import { KubernetesClient } from "../../providers/kubernetes/client";
import type { AnyKind } from "../../stacks/contract/kind";
import type { NamespaceView } from "../../stacks/contract/namespace-view";
import { Authenticator } from "./authenticate";
import { publishedClientCa } from "./certificates";
import { createProxyMetrics, type ProxyMetrics } from "./metrics";
import { Owners } from "./owners";
import { type ProxyServer, startProxyServer } from "./server";
import { Upstream } from "./upstream";

export interface ProxyOptions {
  /** The API server, and the proxy's own credentials for it. */
  config: KubeConfig;
  port: number;
  host: string;
  /** What the proxy proves itself with, as PEM; asked for again and again, as it may be renewed. */
  servingCertificate: () => Promise<{ cert: string; key: string }>;
  /** By default what the API server publishes as the CA of its own users. */
  clientCaFile?: string;
  /** Whose owners list their namespaces. */
  kind: Pick<AnyKind, "group" | "version" | "kind" | "plural" | "scope">;
  view: NamespaceView;
  userGroups: readonly string[];
  refusedGroups: readonly string[];
  maxConnections: number;
  /** How often certificates are asked for again. */
  reloadMs?: number;
  logger: Logger;
}

export interface ApiProxy {
  readonly port: number;
  readonly metrics: ProxyMetrics;
  /** Why it does not do its work yet, or any more; `undefined` when it does. */
  readonly notReady: string | undefined;
  /** Ends watches, takes no more connections, and cuts what is left after `graceMs`. */
  stop(graceMs: number): Promise<void>;
}

/**
 * Starts a reverse proxy for the API server, through which owners of objects list and watch their own namespaces.
 *
 * @throws TerminalError when the certificate cannot be used; ApiError when the API server cannot be reached
 */
export async function startProxy(options: ProxyOptions): Promise<ApiProxy> {
  const { config, logger, clientCaFile, kind, view } = options;
  const client = new KubernetesClient(config);
  const upstream = new Upstream(config);
  const type = {
    apiVersion: `${kind.group}/${kind.version}`,
    kind: kind.kind,
    plural: kind.plural,
    namespaced: kind.scope === "Namespaced",
  };
  const owners = new Owners({ client, type, view, logger });
  let server: ProxyServer | undefined;
  const metrics = createProxyMetrics(kind.plural, {
    connections: () => server?.connections ?? 0,
    lastContact: () => owners.lastContact,
  });
  const stop = new AbortController();
  server = await startProxyServer({
    ...options,
    certificates: async () => ({
      ...(await options.servingCertificate()),
      clientCa: clientCaFile === undefined ? await publishedClientCa(client) : await fs.readFile(clientCaFile, "utf8"),
    }),
    authenticator: new Authenticator({ client, observe: (result) => metrics.tokenReviews.inc({ result }) }),
    owners,
    label: view.label,
    client,
    upstream,
    metrics,
  });
  const { port } = server;
  const watching = owners.start(stop.signal);
  return {
    port,
    metrics,
    get notReady() {
      if (stop.signal.aborted) return "the proxy is stopping";
      return owners.ready ? undefined : "the owners of namespaces are not known yet";
    },
    async stop(graceMs) {
      stop.abort(new Error("the proxy is stopping"));
      await server?.close(graceMs);
      await watching;
      upstream.close();
      await client.close();
    },
  };
}

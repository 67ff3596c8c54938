import fs from "node:fs/promises";
import type { KubeConfig } from "@kubernetes/client-node";
import { KubernetesClient, known } from "../../providers/kubernetes/client";
import type { NamespaceView } from "../../stacks/contract/capabilities";
import type { AnyKind } from "../../stacks/contract/kind";
import { TokenReviews } from "../http/token-reviews";
import { poll } from "../tls/poll";
import type { SecureContext } from "../tls/served-certificate";
import { createProxyMetrics } from "./metrics";
import { Owners } from "./owners";
import { type ListenerCertificates, type ProxyServerOptions, startProxyServer } from "./server";
import { Upstream } from "./upstream";

export interface ProxyOptions
  extends Pick<ProxyServerOptions, "port" | "host" | "userGroups" | "refusedGroups" | "maxConnections" | "logger"> {
  /** The API server, and the proxy's own credentials for it. */
  config: KubeConfig;
  /** The proxy's certificate; read again periodically, as it may be renewed. */
  servingCertificate: () => Promise<SecureContext>;
  /** By default what the API server publishes as the CA of its own users. */
  clientCaFile?: string;
  /** Whose owners list their namespaces. */
  kind: Pick<AnyKind, "group" | "version" | "kind" | "plural" | "scope">;
  view: NamespaceView;
  /** How often certificates are read again. */
  reloadMs?: number;
}

export type ApiProxy = Awaited<ReturnType<typeof startProxy>>;

const RELOAD_MS = 30_000;
const CONFIG_MAP = { apiVersion: "v1", kind: "ConfigMap" } as const;

/**
 * Starts a reverse proxy for the API server, through which owners of objects list and watch their own namespaces.
 *
 * @throws TerminalError when the certificate cannot be used; ApiError when the API server cannot be reached
 */
export async function startProxy(options: ProxyOptions) {
  const { config, logger, clientCaFile, kind, view, reloadMs = RELOAD_MS } = options;
  const client = new KubernetesClient(config);
  const upstream = new Upstream(config, client.server);
  const type = {
    apiVersion: `${kind.group}/${kind.version}`,
    kind: kind.kind,
    plural: kind.plural,
    namespaced: kind.scope === "Namespaced",
  };
  const owners = new Owners({ client, type, view, logger });
  const metrics = createProxyMetrics(kind.plural, () => owners.informer.lastContact);
  const readCertificates = async (): Promise<ListenerCertificates> => ({
    ...(await options.servingCertificate()),
    ca: clientCaFile === undefined ? await publishedClientCa(client) : await fs.readFile(clientCaFile, "utf8"),
  });
  const server = await startProxyServer({
    ...options,
    certificates: await poll(readCertificates, { intervalMs: reloadMs, logger }),
    reviews: new TokenReviews({ client, observe: (result) => metrics.tokenReviews.inc({ result }) }),
    owners,
    label: view.label,
    client,
    upstream,
    metrics,
  });
  const stop = new AbortController();
  const watching = owners.informer.start(stop.signal);
  return {
    port: server.port,
    metrics,
    /** Why the proxy is not ready, or no longer; `undefined` when it is. */
    get notReady(): string | undefined {
      if (stop.signal.aborted) return "the proxy is stopping";
      return owners.ready ? undefined : "the owners of namespaces are not known yet";
    },
    /** Ends watches, takes no more connections, and cuts what is left after `graceMs`. */
    async stop(graceMs: number): Promise<void> {
      stop.abort(new Error("the proxy is stopping"));
      await server.close(graceMs);
      await watching;
      upstream.close();
      await client.close();
    },
  };
}

/** The CA of users' certificates, which the API server publishes for servers with the same users. */
async function publishedClientCa(client: KubernetesClient): Promise<ListenerCertificates["ca"]> {
  const published = await known(client.get(CONFIG_MAP, "extension-apiserver-authentication", "kube-system"));
  const ca = (published?.data as Record<string, string> | undefined)?.["client-ca-file"];
  return ca || [];
}

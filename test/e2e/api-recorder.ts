import http from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import { KubeConfig } from "@kubernetes/client-node";

/** A right, as RBAC names it: `patch apps/deployments`, `patch demo.yash.com/postgreswriters/status`. */
export type Right = string;

/**
 * A proxy before the API server that notes which rights the requests through it make use of, and which it was refused.
 * Everything else, credentials included, passes through as it is.
 */
export class ApiRecorder {
  readonly used = new Set<Right>();
  readonly forbidden = new Set<Right>();
  readonly #server: http.Server;

  private constructor(target: { server: string; ca: string }) {
    this.#server = http.createServer((incoming, outgoing) => {
      const url = new URL(incoming.url ?? "/", target.server);
      const { method = "GET", headers } = incoming;
      const forwarded = https.request(url, { method, headers: { ...headers, host: url.host }, ca: target.ca });
      forwarded.on("response", (response) => {
        this.#note(method, url, response.statusCode ?? 0);
        outgoing.writeHead(response.statusCode ?? 502, response.headers);
        response.pipe(outgoing);
        response.on("error", () => outgoing.destroy());
      });
      forwarded.on("error", () => outgoing.destroy());
      outgoing.on("close", () => forwarded.destroy());
      incoming.pipe(forwarded);
    });
  }

  /** @param kubeconfig names the API server and its CA */
  static async start(kubeconfig: string): Promise<ApiRecorder> {
    const config = new KubeConfig();
    config.loadFromFile(kubeconfig);
    const { server = "", caData = "" } = config.getCurrentCluster() ?? {};
    const recorder = new ApiRecorder({ server, ca: Buffer.from(caData, "base64").toString() });
    await new Promise<void>((resolve) => recorder.#server.listen(0, "127.0.0.1", resolve));
    return recorder;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #note(method: string, url: URL, status: number): void {
    const resource = resourceOf(url.pathname);
    if (resource === undefined) return; // discovery
    const verb = verbOf(method, url, resource.named);
    (status === 403 ? this.forbidden : this.used).add(`${verb} ${resource.path}`);
    if (method === "PATCH" && status === 201) this.used.add(`create ${resource.path}`); // an apply that made the object
  }
}

/** `apps/deployments` of `/apis/apps/v1/namespaces/default/deployments/web`, and whether it names one object. */
function resourceOf(pathname: string): { path: string; named: boolean } | undefined {
  const [root, ...rest] = pathname.split("/").slice(1);
  const group = root === "apis" ? rest.shift() : "";
  const parts = rest.slice(1); // without the version
  if (parts[0] === "namespaces" && parts.length > 2) parts.splice(0, 2);
  const [plural, name, subresource] = parts;
  if (plural === undefined) return undefined;
  return { path: [group, plural, ...(subresource ? [subresource] : [])].join("/"), named: name !== undefined };
}

function verbOf(method: string, url: URL, named: boolean): string {
  if (method !== "GET") return { POST: "create", PUT: "update", PATCH: "patch" }[method] ?? method.toLowerCase();
  if (named) return "get";
  return url.searchParams.get("watch") === "true" ? "watch" : "list";
}

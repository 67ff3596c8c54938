import { ApiProxy } from "../faults/api-proxy";

/** A right, as RBAC names it: `patch apps/deployments`, `patch demo.yash.com/postgreswriters/status`. */
export type Right = string;

/**
 * A proxy before the API server that notes which rights the requests through it make use of, and which it was refused.
 * Everything else, credentials included, passes through as it is.
 */
export class ApiRecorder {
  readonly used = new Set<Right>();
  readonly forbidden = new Set<Right>();
  readonly #proxy: ApiProxy;

  private constructor(proxy: ApiProxy) {
    this.#proxy = proxy;
    proxy.faults = {
      answered: ({ method, url }, status) => {
        this.#note(method, url, status);
        return true;
      },
    };
  }

  /** @param kubeconfig names the API server and its CA */
  static async start(kubeconfig: string): Promise<ApiRecorder> {
    return new ApiRecorder(await ApiProxy.start(kubeconfig));
  }

  get url(): string {
    return this.#proxy.url;
  }

  close(): void {
    this.#proxy.close();
  }

  #note(method: string, url: URL, status: number): void {
    const resource = resourceOf(url.pathname);
    if (resource === undefined) return; // discovery
    if (url.pathname.endsWith("/kindstack-enforcement-probe")) return; // a dry run that a policy is to refuse
    if (status === 403 && url.searchParams.has("dryRun")) return; // with the rights of who asks for a preview
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

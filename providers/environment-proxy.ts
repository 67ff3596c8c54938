import ipaddr from "ipaddr.js";
import { TerminalError } from "./errors";

/**
 * The proxy for requests to a server, from `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`, as Go's programs read them, kubectl
 * among them.
 */
export function environmentProxy(server: URL): string | undefined {
  const variable = server.protocol === "https:" ? "HTTPS_PROXY" : "HTTP_PROXY";
  const value = process.env[variable] || process.env[variable.toLowerCase()];
  if (!value || isExempt(server, process.env.NO_PROXY || process.env.no_proxy || "")) return undefined;
  const url = value.includes("://") ? value : `http://${value}`;
  if (/^https?:/.test(url) && URL.canParse(url)) return url;
  throw new TerminalError("Misconfigured", `${variable} must begin with http:// or https://`);
}

function isExempt({ hostname, port, protocol }: URL, noProxy: string): boolean {
  const host = hostname.toLowerCase().replace(/^\[|\]$/g, "");
  const address = parseAddress(host);
  if (host === "localhost" || address?.range() === "loopback") return true;
  const asked = port || (protocol === "https:" ? "443" : "80");
  return noProxy.split(",").some((entry) => matches(entry.trim().toLowerCase(), host, address, asked));
}

type Address = ReturnType<typeof ipaddr.process>;

function matches(entry: string, host: string, address: Address | undefined, port: string): boolean {
  if (entry === "") return false;
  if (entry === "*") return true;
  if (ipaddr.isValidCIDR(entry)) return address !== undefined && isInNetwork(address, entry);
  const [, bracketed, plain = "", named] = /^(?:\[(.+)\]|([^:]*|.*:.*:.*?))(?::(\d+))?$/.exec(entry) ?? [];
  if (named !== undefined && named !== port) return false;
  const wanted = bracketed ?? plain;
  const wantedAddress = parseAddress(wanted);
  if (wantedAddress !== undefined) return address?.toNormalizedString() === wantedAddress.toNormalizedString();
  if (wanted === "") return false;
  const suffix = wanted.replace(/^\*(?=\.)/, "");
  return suffix.startsWith(".") ? host.endsWith(suffix) : host === suffix || host.endsWith(`.${suffix}`);
}

function isInNetwork(address: Address, entry: string): boolean {
  const [network, length] = ipaddr.parseCIDR(entry);
  return address.kind() === network.kind() && address.match(network, length);
}

function parseAddress(text: string): Address | undefined {
  return ipaddr.isValid(text) ? ipaddr.process(text) : undefined;
}

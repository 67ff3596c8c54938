import { hash } from "node:crypto";
import { posix } from "node:path";
import type { V1IngressSpec } from "@kubernetes/client-node";
import type { Manifest } from "../../../../providers/kubernetes/index";

/*
 * Which requests an Ingress takes, as Ingress controllers read it, in a form that an index can find. Two Ingresses collide
 * when a request could go to either: `/api/` is `/api`, `*.example.com` takes `www.example.com`, and a rule without a host,
 * like a default backend, takes all hosts.
 */

export interface Endpoint {
  /** `*` for all hosts; `*.example.com` for all below one. */
  host: string;
  path: string;
}

/** So many host names with paths of one Ingress are compared with others, with so many characters in all. */
const LIMITS = { endpoints: 1_000, characters: 64 * 1024 } as const;
/** So many labels deep below a wildcard, host names are compared with it. */
const MAX_DEPTH = 8;
/** Longer paths are compared by their digest. */
const MAX_PATH = 256;

/** What an Ingress takes, within the limits. */
interface Endpoints {
  /** By their texts. */
  all: Map<string, Endpoint>;
  /** Whether the Ingress takes more. */
  isCut: boolean;
}

export function endpointsOf({ spec }: Manifest): Endpoints {
  const all = new Map<string, Endpoint>();
  let count = 0;
  let characters = 0;
  for (const { host, path } of written((spec ?? {}) as Partial<V1IngressSpec>)) {
    count++;
    characters += host.length + path.length;
    if (count > LIMITS.endpoints || characters > LIMITS.characters) return { all, isCut: true };
    const endpoint = { host: host.toLowerCase(), path: normalized(path) };
    all.set(textOf(endpoint), endpoint);
  }
  return { all, isCut: false };
}

function* written({ rules = [], defaultBackend }: Partial<V1IngressSpec>): Iterable<Endpoint> {
  if (defaultBackend) yield { host: "*", path: "/" };
  for (const { host, http } of rules) {
    const paths: readonly { path?: string }[] = http?.paths?.length ? http.paths : [{}];
    for (const { path } of paths) yield { host: host || "*", path: path || "/" };
  }
}

export function textOf({ host, path }: Endpoint): string {
  return `${host}${path}`;
}

/** A path as servers compare it: decoded, without empty segments, dots, and a slash or asterisk at its end. */
function normalized(path: string): string {
  const decoded = path.replace(/%([0-9a-f]{2})/gi, (code, hex: string) => {
    const character = String.fromCharCode(Number.parseInt(hex, 16));
    return /[\w.~/-]/.test(character) ? character : code.toUpperCase();
  });
  const whole = posix.join("/", decoded).replace(/([/][*])?[/]?$/, "") || "/";
  return whole.length <= MAX_PATH ? whole : `/…${hash("sha256", whole)}`;
}

/** The index keys of an Ingress: its hosts and paths, and the wildcards that cover them. */
export function indexKeysOf(ingress: Manifest): string[] {
  return [...endpointsOf(ingress).all.values()].flatMap(({ host, path }) => [
    `=${host} ${path}`,
    ...parentsOf(host).map((parent) => `.${parent} ${path}`),
    `. ${path}`,
  ]);
}

/** The values under which an index has the Ingresses that take requests for this endpoint, or for a part of it. */
export function rivalKeysOf({ host, path }: Endpoint): string[] {
  if (host === "*") return [`. ${path}`];
  const above = [`=* ${path}`, ...parentsOf(host).map((parent) => `=*.${parent} ${path}`)];
  return [host.startsWith("*.") ? `.${host.slice(2)} ${path}` : `=${host} ${path}`, ...above];
}

/** The domains above a host, the nearest first. */
function parentsOf(host: string): string[] {
  return [...host.matchAll(/[.]/g)].slice(0, MAX_DEPTH).map(({ index }) => host.slice(index + 1));
}

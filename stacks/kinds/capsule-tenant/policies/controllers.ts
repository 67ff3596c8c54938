/*
 * What controllers read in annotations besides the fields of an object, by controller and the versions that the list is meant
 * for; it was not compared with the documentation of each. docs/capsule.md lists the same; a test holds them together.
 */

interface Controller {
  name: string;
  versions: string;
  /** One that ends with a dot means all that begin so. */
  annotations: readonly string[];
}

/** Annotations that make an Ingress take other host names, or read paths as expressions. */
export const ROUTING: readonly Controller[] = [
  {
    name: "ingress-nginx",
    versions: "0.22 to 1.14",
    annotations: [
      "nginx.ingress.kubernetes.io/server-alias",
      "nginx.ingress.kubernetes.io/from-to-www-redirect",
      "nginx.ingress.kubernetes.io/use-regex",
      "nginx.ingress.kubernetes.io/rewrite-target",
      "nginx.ingress.kubernetes.io/server-snippet",
      "nginx.ingress.kubernetes.io/configuration-snippet",
    ],
  },
  {
    name: "NGINX Ingress Controller",
    versions: "2 to 5",
    annotations: ["nginx.org/path-regex", "nginx.org/server-snippets", "nginx.org/location-snippets"],
  },
  {
    name: "HAProxy Ingress",
    versions: "0.13 to 0.15",
    annotations: [
      "haproxy-ingress.github.io/server-alias",
      "haproxy-ingress.github.io/server-alias-regex",
      "haproxy-ingress.github.io/path-type",
      "haproxy-ingress.github.io/redirect-from",
      "haproxy-ingress.github.io/redirect-from-regex",
    ],
  },
  {
    name: "Kong Ingress Controller",
    versions: "2 and 3",
    annotations: ["konghq.com/host-aliases", "konghq.com/regex-prefix"],
  },
  {
    name: "Traefik",
    versions: "2 and 3",
    annotations: [
      "traefik.ingress.kubernetes.io/router.pathmatcher",
      "traefik.ingress.kubernetes.io/router.rulesyntax",
    ],
  },
  { name: "AWS Load Balancer Controller", versions: "2", annotations: ["alb.ingress.kubernetes.io/conditions."] },
  {
    name: "Application Gateway Ingress Controller",
    versions: "1",
    annotations: ["appgw.ingress.kubernetes.io/hostname-extension"],
  },
  { name: "APISIX Ingress Controller", versions: "1 and 2", annotations: ["k8s.apisix.apache.org/use-regex"] },
  { name: "Pomerium Ingress Controller", versions: "0.20 and later", annotations: ["ingress.pomerium.io/path_regex"] },
  {
    name: "Skipper",
    versions: "0.11 to 0.22",
    annotations: [
      "zalando.org/skipper-routes",
      "zalando.org/skipper-predicate",
      "zalando.org/skipper-ingress-path-mode",
    ],
  },
];

/** What names of annotations contain in controllers that are not listed, and where their prefix is configured. */
export const ROUTING_WORDS = "(?i)(alias|regex|snippet)";

/** Annotations that make controllers of DNS make records. */
export const DNS: readonly Controller[] = [
  {
    name: "ExternalDNS",
    versions: "0.5 to 0.19",
    annotations: ["external-dns.alpha.kubernetes.io/hostname", "external-dns.alpha.kubernetes.io/internal-hostname"],
  },
  {
    name: "kops dns-controller",
    versions: "1.2 and later",
    annotations: ["dns.alpha.kubernetes.io/external", "dns.alpha.kubernetes.io/internal"],
  },
  { name: "Gardener", versions: "1", annotations: ["dns.gardener.cloud/dnsnames"] },
];
export const DNS_ANNOTATIONS = DNS.flatMap(({ annotations }) => annotations);

/** Keys of annotations that tell load balancers their addresses, by address, name or id. */
export const ADDRESS_KEYS =
  "(?i)(load-?balancer-?ips?|lb-ipam-ips|^lbipam[.]cilium[.]io/ips|^purelb[.]io/addresses|^loxilb[.]io/staticip|ip-address(es)?|static-ip(-name)?|" +
  "eip-allocations|load-balancer-(private-)?ipv[46](-addresses)?|load-balancer-address|(load-?|node)balancer-id|azure-pip-(name|prefix-id)(-ipv6)?)$";

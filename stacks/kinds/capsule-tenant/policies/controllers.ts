/*
 * What controllers read in annotations besides the fields of an object. Many may be told another prefix, and some read names in
 * any case, so a name counts in every case, and with every prefix where it is none that others have. docs/capsule.md lists the
 * same; a test holds them together.
 */

interface Controller {
  name: string;
  /** What the list was compared with, which are versions, or the source of its main branch. */
  comparedWith: string;
  /** One that ends with a dot means all that begin so. */
  annotations: readonly string[];
}

/** Annotations that make an Ingress take other host names, or read paths as expressions or not at all. */
export const ROUTING: readonly Controller[] = [
  {
    name: "ingress-nginx",
    comparedWith: "0.22 and later",
    annotations: [
      "nginx.ingress.kubernetes.io/server-alias",
      "nginx.ingress.kubernetes.io/from-to-www-redirect",
      "nginx.ingress.kubernetes.io/use-regex",
      "nginx.ingress.kubernetes.io/rewrite-target",
      "nginx.ingress.kubernetes.io/ssl-passthrough",
      "nginx.ingress.kubernetes.io/server-snippet",
      "nginx.ingress.kubernetes.io/configuration-snippet",
    ],
  },
  {
    name: "NGINX Ingress Controller",
    comparedWith: "source",
    annotations: [
      "nginx.org/path-regex",
      "nginx.org/rewrite-target",
      "nginx.org/server-snippets",
      "nginx.org/location-snippets",
    ],
  },
  {
    name: "HAProxy Ingress",
    comparedWith: "source",
    annotations: [
      "haproxy-ingress.github.io/server-alias",
      "haproxy-ingress.github.io/server-alias-regex",
      "haproxy-ingress.github.io/path-type",
      "haproxy-ingress.github.io/redirect-from",
      "haproxy-ingress.github.io/redirect-from-regex",
      "haproxy-ingress.github.io/ssl-passthrough",
    ],
  },
  {
    name: "Kong Ingress Controller",
    comparedWith: "source of 3",
    annotations: ["konghq.com/host-aliases", "konghq.com/regex-prefix"],
  },
  {
    name: "Traefik",
    comparedWith: "source of 3",
    annotations: [
      "traefik.ingress.kubernetes.io/router.pathmatcher",
      "traefik.ingress.kubernetes.io/router.rulesyntax",
    ],
  },
  {
    name: "AWS Load Balancer Controller",
    comparedWith: "source",
    annotations: ["alb.ingress.kubernetes.io/conditions.", "alb.ingress.kubernetes.io/use-regex-path-match"],
  },
  {
    name: "Application Gateway Ingress Controller",
    comparedWith: "source",
    annotations: ["appgw.ingress.kubernetes.io/hostname-extension"],
  },
  {
    name: "APISIX Ingress Controller",
    comparedWith: "source",
    annotations: ["k8s.apisix.apache.org/use-regex"],
  },
  {
    name: "Pomerium Ingress Controller",
    comparedWith: "source",
    annotations: ["ingress.pomerium.io/path_regex"],
  },
  {
    name: "Skipper",
    comparedWith: "source",
    annotations: [
      "zalando.org/skipper-routes",
      "zalando.org/skipper-predicate",
      "zalando.org/skipper-ingress-path-mode",
    ],
  },
];

/** Annotations that make controllers of DNS make records. */
export const DNS: readonly Controller[] = [
  {
    name: "ExternalDNS",
    comparedWith: "0.14 to 0.23",
    annotations: [
      "external-dns.kubernetes.io/hostname",
      "external-dns.kubernetes.io/internal-hostname",
      "external-dns.kubernetes.io/cloudflare-custom-hostname",
      "external-dns.alpha.kubernetes.io/hostname",
      "external-dns.alpha.kubernetes.io/internal-hostname",
      "external-dns.alpha.kubernetes.io/cloudflare-custom-hostname",
    ],
  },
  {
    name: "kops dns-controller",
    comparedWith: "source of 1.20",
    annotations: ["dns.alpha.kubernetes.io/external", "dns.alpha.kubernetes.io/internal"],
  },
  { name: "Gardener's external-dns-management", comparedWith: "0.55", annotations: ["dns.gardener.cloud/dnsnames"] },
];

const names = ROUTING.flatMap(({ annotations }) => annotations.map((key) => key.slice(key.indexOf("/") + 1)));
const expressions = names.map((name) => name.replaceAll(".", "[.]") + (name.endsWith(".") ? ".*" : ""));

/** Also what names of annotations contain in controllers that are not listed. */
export const ROUTING_KEYS = `(?i)(/(${[...new Set(expressions)].join("|")})$|alias|regex|snippet|passthrough)`;
/** Those of them that list host names. */
export const ALIAS_KEYS = "(?i)/(server-alias|host-aliases|hostname-extension|redirect-from)$";
/** Those of them that are expressions for host names. */
export const ALIAS_EXPRESSION_KEYS = "(?i)/(server-alias|redirect-from)-regex$";
export const DNS_KEYS =
  "(?i)(/(internal-|cloudflare-custom-)?hostname|^dns[.]alpha[.]kubernetes[.]io/(external|internal)|^dns[.]gardener[.]cloud/dnsnames)$";

/** Keys of annotations that tell load balancers their addresses, by address, name or id. */
export const ADDRESS_KEYS =
  "(?i)(load-?balancer-?ips?|lb-ipam-ips|^lbipam[.]cilium[.]io/ips|^purelb[.]io/addresses|^loxilb[.]io/staticip|^cis[.]f5[.]com/ip(am-?label)?|ip-address(es)?|static-ip(-name)?|" +
  "eip-allocations(-discovery-tags)?|additional-public-ips|^loadbalancer[.]openstack[.]org/port-id|load-balancer-(private-)?ipv[46](-addresses)?|load-balancer-address|(load-?|node)balancer-id|azure-pip-(name|prefix-id)(-ipv6)?)$";

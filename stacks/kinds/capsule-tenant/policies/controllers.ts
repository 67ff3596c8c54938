/*
 * What controllers read in annotations besides the fields of an object. Many may be told another prefix, and some read names in
 * any case, so a name counts in every case, and with every prefix where it is none that others have.
 */

/**
 * Annotations that make an Ingress take other host names, or read paths as expressions or not at all. One that ends with a dot means
 * all that begin so. docs/capsule.md lists the same by controller, with what each was compared with.
 */
export const ROUTING: readonly string[] = [
  "nginx.ingress.kubernetes.io/server-alias",
  "nginx.ingress.kubernetes.io/from-to-www-redirect",
  "nginx.ingress.kubernetes.io/use-regex",
  "nginx.ingress.kubernetes.io/rewrite-target",
  "nginx.ingress.kubernetes.io/ssl-passthrough",
  "nginx.ingress.kubernetes.io/server-snippet",
  "nginx.ingress.kubernetes.io/configuration-snippet",
  "nginx.org/path-regex",
  "nginx.org/rewrite-target",
  "nginx.org/server-snippets",
  "nginx.org/location-snippets",
  "haproxy-ingress.github.io/server-alias",
  "haproxy-ingress.github.io/server-alias-regex",
  "haproxy-ingress.github.io/path-type",
  "haproxy-ingress.github.io/redirect-from",
  "haproxy-ingress.github.io/redirect-from-regex",
  "haproxy-ingress.github.io/ssl-passthrough",
  "konghq.com/host-aliases",
  "konghq.com/regex-prefix",
  "traefik.ingress.kubernetes.io/router.pathmatcher",
  "traefik.ingress.kubernetes.io/router.rulesyntax",
  "alb.ingress.kubernetes.io/conditions.",
  "alb.ingress.kubernetes.io/use-regex-path-match",
  "appgw.ingress.kubernetes.io/hostname-extension",
  "k8s.apisix.apache.org/use-regex",
  "ingress.pomerium.io/path_regex",
  "zalando.org/skipper-routes",
  "zalando.org/skipper-predicate",
  "zalando.org/skipper-ingress-path-mode",
];

const names = ROUTING.map((key) => key.slice(key.indexOf("/") + 1));
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

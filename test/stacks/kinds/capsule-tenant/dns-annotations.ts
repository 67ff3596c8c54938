/** Annotations that make controllers of DNS make records: of ExternalDNS, kops and Gardener. */
export const DNS_ANNOTATIONS = [
  "external-dns.kubernetes.io/hostname",
  "external-dns.kubernetes.io/internal-hostname",
  "external-dns.kubernetes.io/cloudflare-custom-hostname",
  "external-dns.alpha.kubernetes.io/hostname",
  "external-dns.alpha.kubernetes.io/internal-hostname",
  "external-dns.alpha.kubernetes.io/cloudflare-custom-hostname",
  "dns.alpha.kubernetes.io/external",
  "dns.alpha.kubernetes.io/internal",
  "dns.gardener.cloud/dnsnames",
];

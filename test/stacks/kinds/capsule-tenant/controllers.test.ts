import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import {
  ADDRESS_KEYS,
  DNS,
  DNS_KEYS,
  ROUTING,
  ROUTING_KEYS,
} from "../../../../stacks/kinds/capsule-tenant/policies/controllers";

const page = readFileSync(path.join(__dirname, "../../../../docs/capsule.md"), "utf8");

it.each([...ROUTING])("the page lists $name with its annotations", ({ name, comparedWith, annotations }) => {
  const row = page.split("\n").find((line) => line.startsWith(`| ${name} | ${comparedWith} |`)) ?? "";
  const [prefix] = annotations.map((one) => one.slice(0, one.indexOf("/") + 1));
  for (const annotation of annotations) {
    const rest = annotation.slice(prefix?.length);
    expect(row).toMatch(new RegExp(`\`(${prefix?.replaceAll(".", "[.]")})?${rest.replaceAll(".", "[.]")}\``));
  }
  expect(row.split("`").length).toBe(2 * annotations.length + 1);
});

it.each([...DNS])("the page names $name and what it was compared with", ({ name, comparedWith }) => {
  expect(page).toContain(`${name} (${comparedWith})`);
});

describe("a policy reads an annotation", () => {
  const matches = (expression: string, key: string) => new RegExp(expression.replaceAll("(?i)", ""), "i").test(key);
  const all = ROUTING.flatMap(({ annotations }) => annotations);

  it.each([...all, "ingress.kubernetes.io/redirect-from", "traefik.ingress.kubernetes.io/router.pathMatcher"])(
    "for other requests: %s",
    (key) => expect(matches(ROUTING_KEYS, key.replace(/[.]$/, ".web"))).toBe(true),
  );
  it.each(["nginx.ingress.kubernetes.io/ssl-redirect", "example.com/path-types", "example.com/conditions"])(
    "for nothing of that: %s",
    (key) => expect(matches(ROUTING_KEYS, key)).toBe(false),
  );

  it.each([...DNS.flatMap(({ annotations }) => annotations), "dns.example.com/Hostname"])(
    "for names in DNS: %s",
    (key) => expect(matches(DNS_KEYS, key)).toBe(true),
  );
  it.each(["example.com/external", "example.com/my-hostname", "hostname"])("for no names in DNS: %s", (key) =>
    expect(matches(DNS_KEYS, key)).toBe(false),
  );

  it.each([
    ...["metallb.io/loadBalancerIPs", "kube-vip.io/loadbalancerIPs", "lbipam.cilium.io/ips", "io.cilium/lb-ipam-ips"],
    ...["cis.f5.com/ip", "cis.f5.com/ipamLabel", "loadbalancer.openstack.org/port-id"],
    "service.beta.kubernetes.io/azure-additional-public-ips",
    "service.beta.kubernetes.io/aws-load-balancer-eip-allocations-discovery-tags",
  ])("for addresses: %s", (key) => expect(matches(ADDRESS_KEYS, key)).toBe(true));
  it.each(["metallb.io/address-pool", "service.beta.kubernetes.io/aws-load-balancer-ip-address-type"])(
    "for no addresses: %s",
    (key) => expect(matches(ADDRESS_KEYS, key)).toBe(false),
  );
});

import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import {
  ADDRESS_KEYS,
  DNS_KEYS,
  ROUTING,
  ROUTING_KEYS,
} from "../../../../stacks/kinds/capsule-tenant/policies/controllers";
import { DNS_ANNOTATIONS } from "./dns-annotations";

it("the page lists the annotations of each controller", () => {
  const page = readFileSync(path.join(__dirname, "../../../../docs/capsule.md"), "utf8");
  const [, table = ""] = page.split("| controller | compared with | annotations |\n|---|---|---|\n");
  const listed = table.split("\n\n", 1).flatMap((rows) =>
    rows.split("\n").flatMap((row) => {
      const keys = [...row.matchAll(/`([^`]+)`/g)].map(([, key = ""]) => key);
      const [prefix = ""] = keys[0]?.split("/") ?? [];
      return keys.map((key) => (key.includes("/") ? key : `${prefix}/${key}`));
    }),
  );
  expect(listed).toEqual(ROUTING);
});

describe("a policy reads an annotation", () => {
  const matches = (expression: string, key: string) => new RegExp(expression.replaceAll("(?i)", ""), "i").test(key);

  it.each([...ROUTING, "ingress.kubernetes.io/redirect-from", "traefik.ingress.kubernetes.io/router.pathMatcher"])(
    "for other requests: %s",
    (key) => expect(matches(ROUTING_KEYS, key.replace(/[.]$/, ".web"))).toBe(true),
  );
  it.each(["nginx.ingress.kubernetes.io/ssl-redirect", "example.com/path-types", "example.com/conditions"])(
    "for nothing of that: %s",
    (key) => expect(matches(ROUTING_KEYS, key)).toBe(false),
  );

  it.each([...DNS_ANNOTATIONS, "dns.example.com/Hostname"])("for names in DNS: %s", (key) =>
    expect(matches(DNS_KEYS, key)).toBe(true),
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

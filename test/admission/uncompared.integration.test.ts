import { beforeAll, describe, expect, it } from "vitest";
import type { KubernetesClient, Manifest } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { ROUTING } from "../../stacks/kinds/capsule-tenant/policies/controllers";
import { DNS_ANNOTATIONS } from "../stacks/kinds/capsule-tenant/dns-annotations";
import { create, expectAcceptance, expectRefusal, TENANT, uniqueName, useServedAdmission } from "./test-admission";

const admission = useServedAdmission();
const [alice, compared] = [uniqueName("alice"), uniqueName("compared")];
const [listed, free] = [uniqueName("listed"), uniqueName("free")];
let asAlice: KubernetesClient;

beforeAll(async () => {
  asAlice = await admission.user(alice);
  const owner = { kind: "User", name: alice } as const;
  await admission.tenant(compared, { owner, hostnameCollisionScope: "Cluster" });
  const ingressHostnames = { allowed: ["oil.example.com"] };
  await admission.tenant(listed, { owner, hostnameCollisionScope: "Tenant", ingressHostnames });
  await admission.tenant(free, { owner, hostnameCollisionScope: "Disabled" });
  for (const name of [compared, listed, free]) await admission.tenantNamespace(name, name, alice);
  for (const name of [compared, listed]) await admission.untilEnforced(name);
});

const object = (apiVersion: string, kind: string, namespace: string, spec: object, annotations = {}): Manifest => ({
  ...{ apiVersion, kind, spec },
  metadata: { name: uniqueName("web"), namespace, ...(Object.keys(annotations).length > 0 && { annotations }) },
});
const backend = { service: { name: "web", port: { number: 80 } } };
const ingress = (namespace: string, path: string, annotations: Record<string, string> = {}) => {
  const http = { paths: [{ path, pathType: "ImplementationSpecific", backend }] };
  const spec = { rules: [{ host: "oil.example.com", http }] };
  return object("networking.k8s.io/v1", "Ingress", namespace, spec, annotations);
};
const SPECS = { Service: { ports: [{ port: 80 }] }, Pod: { containers: [{ name: "app", image: "nginx" }] } };
const named = (kind: keyof typeof SPECS, namespace: string, key: string) =>
  object("v1", kind, namespace, SPECS[kind], { [key]: "oil.example.com" });

describe("where host names are compared", () => {
  it.each([
    ...ROUTING.map((key) => key.replace(/[.]$/, ".web")),
    ...["ingress.kubernetes.io/redirect-from", "traefik.ingress.kubernetes.io/router.pathMatcher"],
    "acme.example.com/host-alias-list",
  ])("an Ingress may not have the annotation %s", async (key) => {
    await expectRefusal(asAlice, ingress(compared, "/", { [key]: "x" }), `the annotation ${key} is not allowed`);
    await expectAcceptance(asAlice, ingress(compared, "/", { [key]: "false" }));
    await expectAcceptance(asAlice, ingress(free, "/", { [key]: "x" }));
  });

  it.each(["/foo(/|$)(.*)", "/fo[o]", "/.*", "/(.*)", "/~/fo", "/a{2}", "/fo*", "/*/b", "/x|y", "/a+", "/\\d"])(
    "an Ingress may not have the path %s",
    async (path) => {
      await expectRefusal(asAlice, ingress(compared, path), "can be an expression");
      await expectAcceptance(asAlice, ingress(free, path));
    },
  );

  it.each(["/", "/foo.html", "/api/*", "/*", "/a~b", "/a-b_c/d.e", "/%7Ea"])(
    "an Ingress may have the path %s",
    async (path) => {
      await expectAcceptance(asAlice, ingress(compared, path));
    },
  );

  it.each([...DNS_ANNOTATIONS, "dns.example.com/hostname"])("names by %s need a list of host names", async (key) => {
    for (const kind of ["Service", "Pod"] as const) {
      await expectRefusal(asAlice, named(kind, compared, key), `the annotation ${key} is not allowed`);
      await expectAcceptance(asAlice, named(kind, listed, key));
      await expectAcceptance(asAlice, named(kind, free, key));
    }
  });

  it("what an Ingress has already may stay", async () => {
    const alias = (host: string) => ({ "nginx.ingress.kubernetes.io/server-alias": host });
    const made = await create(admission.client, ingress(free, "/fo[o]", alias("a.example.com")));
    await admission.client.mergePatch(TENANT, free, undefined, { spec: { hostnameCollisionScope: "Namespace" } });
    await admission.bindPolicies(free);
    await admission.untilEnforced(free);
    await eventually(() => expectRefusal(asAlice, ingress(free, "/fo[o]"), "can be an expression"));
    const labelled = { metadata: { labels: { a: "b" } } };
    const change = (patch: object) => asAlice.mergePatch(made, made.metadata.name, free, patch);
    await expect(change(labelled)).resolves.toMatchObject(labelled);
    const renamed = change({ metadata: { annotations: alias("b.example.com") } });
    await expect(renamed).rejects.toThrow("server-alias is not allowed");
  });
});

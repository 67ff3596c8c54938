import { output } from "@pulumi/pulumi/output";
import { expect, it } from "vitest";
import { KubernetesObject, type Manifest } from "../../../providers/kubernetes/index";
import { declaredBy } from "../../../providers/registration";

const owner = { uid: "u", description: "d" };
const metadata = { name: "a", namespace: "b" };
const labels = { app: "a" };
const template = { metadata: { labels }, spec: { containers: [{ name: "a", image: output("a") }] } };
const selector = { matchLabels: labels };

/** What the compiler says of manifests is the test: `npm run check` fails where one of these lines has no error. */
function typed() {
  new KubernetesObject("fine", {
    owner,
    manifest: { apiVersion: "apps/v1", kind: "Deployment", metadata, spec: { replicas: 1, selector, template } },
  });
  new KubernetesObject("misspelt", {
    owner,
    // @ts-expect-error there is no such field
    manifest: { apiVersion: "apps/v1", kind: "Deployment", metadata, spec: { replica: 1, selector, template } },
  });
  new KubernetesObject("wrong type", {
    owner,
    // @ts-expect-error data is a map of texts
    manifest: { apiVersion: "v1", kind: "ConfigMap", metadata, data: { size: 1 } },
  });
  new KubernetesObject("top", {
    owner,
    // @ts-expect-error a ConfigMap has no spec
    manifest: { apiVersion: "v1", kind: "ConfigMap", metadata, spec: {} },
  });
  new KubernetesObject("nested", {
    owner,
    manifest: {
      apiVersion: "networking.k8s.io/v1",
      kind: "Ingress",
      metadata,
      // @ts-expect-error the port is an object
      spec: { defaultBackend: { service: { name: "a", port: 80 } } },
    },
  });
  new KubernetesObject("custom", {
    owner,
    manifest: { apiVersion: "example.com/v1", kind: "Deployment", metadata, spec: { whatever: [1] } },
  });
  const any: Manifest = { apiVersion: "apps/v1", kind: "Deployment", metadata, spec: { whatever: 1 } };
  new KubernetesObject("any", { owner, manifest: any });
}

it("a manifest is registered as it is, whatever the compiler knows of it", async () => {
  const manifests = (await declaredBy(typed)).map(({ inputs }) => (inputs as { manifest?: Manifest }).manifest);
  expect(manifests.map((manifest) => manifest?.spec ?? manifest?.data)).toMatchObject([
    { template: { spec: { containers: [{ image: "a" }] } } },
    { replica: 1 },
    { size: 1 },
    {},
    { defaultBackend: {} },
    { whatever: [1] },
    { whatever: 1 },
  ]);
});

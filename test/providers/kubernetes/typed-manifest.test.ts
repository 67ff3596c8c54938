import type { input } from "@pulumi/kubernetes/types";
import { expect, it } from "vitest";
import { KubernetesObject } from "../../../providers/kubernetes/index";
import { declaredBy } from "../../../providers/registration";

const owner = { uid: "u", description: "d" };
const metadata = { name: "a", namespace: "b" };
const template = { metadata: { labels: { app: "a" } }, spec: { containers: [{ name: "a", image: "a" }] } };

it("a manifest may have the type of its kind, so that the compiler refuses a wrong field", async () => {
  const manifest = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata,
    spec: { replicas: 1, selector: { matchLabels: { app: "a" } }, template },
  } satisfies input.apps.v1.Deployment;
  const misspelt = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata,
    // @ts-expect-error there is no such field
    spec: { replica: 1, selector: { matchLabels: { app: "a" } }, template },
  } satisfies input.apps.v1.Deployment;
  const [resource] = await declaredBy(() => void new KubernetesObject("deployment", { owner, manifest }));
  expect(resource?.inputs).toMatchObject({ manifest });
  expect(misspelt.kind).toBe("Deployment");
});

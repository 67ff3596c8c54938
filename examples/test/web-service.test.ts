import type { LiveObject } from "kindstack/providers/kubernetes";
import { objectOf, planBetween, registeredBy } from "kindstack/testing";
import { describe, expect, it } from "vitest";
import { webService } from "../src/web-service/kind";
import type { WebServiceSpec } from "../src/web-service/schema";

const container = { image: "registry.example.com/shop:1", port: 8080 };
const withSpec = (spec: Partial<WebServiceSpec>) => objectOf(webService, { container, ...spec }, { name: "shop" });

describe("WebService", () => {
  it("makes a Deployment, a Service and a PodDisruptionBudget, and the others on demand", async () => {
    const kinds = async (spec: Partial<WebServiceSpec>) =>
      (await registeredBy(webService, withSpec(spec))).map(({ inputs }) => inputs.manifest.kind);
    const always = ["Deployment", "Service", "PodDisruptionBudget"];
    expect(await kinds({})).toEqual(always);
    expect(await kinds({ host: "shop.example.com" })).toEqual([...always, "Ingress"]);
    expect(await kinds({ autoscaling: { minReplicas: 1, maxReplicas: 3 } })).toEqual([
      ...always,
      "HorizontalPodAutoscaler",
    ]);
  });

  it("scales in place, and takes the Ingress away with the host", async () => {
    const before = withSpec({ replicas: 1, host: "shop.example.com" });
    expect(await planBetween(webService, before, withSpec({ replicas: 3 }))).toEqual([
      { operation: "update", name: "deployment/shop", inputs: ["manifest.spec.replicas"] },
      { operation: "delete", name: "ingress/shop", inputs: [] },
    ]);
  });

  it("tells autoscalers how many Pods there are, and which", () => {
    const deployment = { kind: "Deployment", status: { replicas: 2, readyReplicas: 1 } } as unknown as LiveObject;
    const selector = "app.kubernetes.io/name=shop";
    expect(webService.report(withSpec({}), [deployment])).toEqual({ replicas: 2, readyReplicas: 1, selector });
    expect(webService.report(withSpec({}), [])).toEqual({ replicas: 0, readyReplicas: 0, selector });
  });
});

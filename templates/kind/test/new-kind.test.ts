import type { LiveObject } from "kindstack/providers/kubernetes";
import { objectOf, planBetween, registeredBy } from "kindstack/testing";
import { describe, expect, it } from "vitest";
import { newKind } from "../src/new-kind/kind";

const withText = (text: string) => objectOf(newKind, { text }, { name: "moving" });

describe("NewKind", () => {
  it("makes a ConfigMap with its text", async () => {
    expect(await registeredBy(newKind, withText("on Sunday"))).toMatchObject([
      {
        inputs: {
          manifest: { kind: "ConfigMap", metadata: { name: "moving-new-kind" }, data: { text: "on Sunday" } },
        },
      },
    ]);
  });

  it("changes the ConfigMap in place", async () => {
    expect(await planBetween(newKind, withText("on Sunday"), withText("on Monday"))).toEqual([
      { operation: "update", name: "configmap/moving", inputs: ["manifest.data.text"] },
    ]);
  });

  it("refuses an empty text", () => {
    expect(() => withText("")).toThrow("spec.text");
  });

  it("names its ConfigMap, while there is one", () => {
    const configMap = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "moving-new-kind" } } as LiveObject;
    expect(newKind.report(withText("on Sunday"), [configMap])).toEqual({ configMap: "moving-new-kind" });
    expect(newKind.report(withText("on Sunday"), [])).toEqual({ configMap: "" });
  });
});

import { ComponentResource, CustomResource } from "@pulumi/pulumi/resource";
import { describe, expect, it } from "vitest";
import { component, withParent } from "../../providers/dynamic";
import { declaredBy } from "../../providers/registration";
import { Thing } from "../automation/things";
import { terminal } from "./failures";

class Password extends CustomResource {
  constructor(name: string) {
    super("random:index:Password", name, { result: undefined });
  }
}

describe("a resource of the SDK in a plain program", () => {
  it.each([
    ["a plugin's", () => void new Password("a")],
    ["a component", () => void new ComponentResource("a:b:C", "a")],
  ])("is refused for good: %s", async (_, program) => {
    await expect(declaredBy(program)).rejects.toEqual(terminal("InvalidProgram", "sdkRuntime: true"));
  });

  it("is none of our own, whatever their parent", async () => {
    const resources = await declaredBy(() => {
      const group = component("test:index:Group", "group");
      new Thing("below", { key: "below", value: "1" }, { parent: group });
      withParent(group, () => new Thing("within", { key: "within", value: "1" }));
    });
    expect(resources).toMatchObject([{ name: "group" }, { name: "below", parent: 0 }, { name: "within", parent: 0 }]);
  });
});

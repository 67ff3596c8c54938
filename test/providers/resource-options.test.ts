import { describe, expect, it } from "vitest";
import { component, DynamicResource } from "../../providers/dynamic";
import { KubernetesObject } from "../../providers/kubernetes/index";
import { declaredBy } from "../../providers/registration";
import type { DynamicResourceOptions } from "../../providers/resource-options";
import { GUARD_TYPE } from "../../providers/urn";
import { Thing } from "../automation/things";
import { terminal } from "./failures";

const declared = (options: DynamicResourceOptions) =>
  declaredBy(() => void new Thing("a", { key: "a", value: "1" }, options));
const optionsOf = async (options: DynamicResourceOptions) => (await declared(options)).at(-1)?.options;

describe("the options of a resource in a plain program", () => {
  it("reach the engine", async () => {
    const lists = { ignoreChanges: ["value"], additionalSecretOutputs: ["value"] };
    const options = { ...lists, protect: true, customTimeouts: { create: "5m" }, deleteBeforeReplace: false };
    expect(await optionsOf(options)).toEqual({ ...options, deleteBeforeReplaceDefined: true });
  });

  it("name former names, types and parents", async () => {
    const resources = await declaredBy(() => {
      const group = component("test:index:Group", "group");
      const types = [{ name: "b" }, { type: "t", parent: undefined }];
      const aliases = ["urn:former", ...types, { parent: group }, { parent: "urn:p" }];
      new Thing("a", { key: "a", value: "1" }, { aliases: aliases as NonNullable<DynamicResourceOptions["aliases"]> });
    });
    expect(resources.at(-1)).toMatchObject({
      options: {
        aliases: [
          ...[{ urn: "urn:former" }, { spec: { name: "b" } }, { spec: { type: "t", noParent: true } }],
          ...[{ spec: {} }, { spec: { parentUrn: "urn:p" } }],
        ],
      },
      aliasParents: { 3: 0 },
    });
  });

  it("may be undefined, as options that are passed on are", async () => {
    const options = { provider: undefined, protect: undefined } as object;
    expect(await optionsOf(options)).toBeUndefined();
  });

  it.each([
    ["provider", { provider: {} }, /option provider of the resource "a": .*sdkRuntime: true/],
    ["hooks", { hooks: {} }, /option hooks .*sdkRuntime: true/],
    ["import", { import: "id" }, /option import .*create adopts/],
    ["replaceOnChanges", { replaceOnChanges: ["value"] }, /option replaceOnChanges .*diff/],
    ["a duration", { customTimeouts: { create: "5 min" } }, /customTimeouts.create .*"5 min" must be a duration/],
    ["a project", { aliases: [{ project: "other" }] }, /aliases: project/],
    ["a promise", { dependsOn: Promise.resolve([]) }, /"a" refers to a resource that another update or the SDK/],
  ])("that it cannot have are refused for good: %s", async (_, options, message) => {
    await expect(declared(options as DynamicResourceOptions)).rejects.toEqual(terminal("InvalidProgram", message));
  });

  it("that it cannot have are refused by the compiler", () => {
    const provider = {} as never;
    // @ts-expect-error a dynamic provider has no provider of its own
    const options: DynamicResourceOptions = { provider };
    expect(options).toEqual({ provider });
  });
});

it("the type of the guard of stacks is refused", async () => {
  class Guard extends DynamicResource {
    constructor() {
      super({ module: "kindstack", name: "Guard", stub: "" }, "mine", {});
    }
  }
  const message = `^the resource "mine": the type ${GUARD_TYPE} is Kindstack's own$`;
  await expect(declaredBy(() => void new Guard())).rejects.toEqual(terminal("InvalidProgram", message));
});

it("replaceOnChanges of a Kubernetes object is its input of this name, with or without the manifest's name before a path", async () => {
  const manifest = { apiVersion: "v1", kind: "Service", metadata: { name: "a", namespace: "b" } };
  const inputs = { manifest, owner: { uid: "u", description: "d" }, replaceOnChanges: ["spec.clusterIP"] };
  const replaceOnChanges = ["manifest.spec.type", "*"];
  const [resource] = await declaredBy(() => void new KubernetesObject("a", inputs, { replaceOnChanges }));
  expect(resource?.inputs).toMatchObject({ replaceOnChanges: ["spec.clusterIP", "spec.type", "*"] });
  expect(resource?.options).toBeUndefined();
});

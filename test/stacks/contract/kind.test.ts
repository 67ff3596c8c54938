import Type from "typebox";
import { describe, expect, it } from "vitest";
import { defineProvider } from "../../../providers/dynamic";
import { TerminalError } from "../../../providers/errors";
import type { DynamicProvider } from "../../../providers/provider";
import { adoptsAfterCrash, defineKind, parseObject, statusOf } from "../../../stacks/contract/kind";
import { liveObject, tenantObject } from "../../objects";
import { GADGET } from "../../operator/gadget";

const gadget = defineKind({
  ...GADGET,
  spec: Type.Object({
    size: Type.Integer({ minimum: 1, maximum: 9 }),
    colour: Type.Optional(Type.Enum(["red", "blue"], { type: "string" })),
    sizes: Type.Optional(Type.Record(Type.String(), Type.Integer())),
    parts: Type.Array(Type.Object({ name: Type.String({ minLength: 1 }) }), { maxItems: 3 }),
    any: Type.Optional(Type.Unknown()),
    form: Type.Optional(Type.Union([Type.Literal("round"), Type.Literal("flat")])),
    port: Type.Optional(Type.Union([Type.Integer(), Type.String()])),
    from: Type.Optional(
      Type.Union([
        Type.Object({ type: Type.Literal("git"), url: Type.String() }),
        Type.Object({
          type: Type.Literal("s3"),
          bucket: Type.String(),
          class: Type.Optional(Type.Union([Type.Literal("hot"), Type.Literal("cold")])),
        }),
      ]),
    ),
  }),
  owns: [],
  validate({ spec }) {
    if (spec.size > spec.parts.length) {
      throw new TerminalError("Invalid", `spec.size: ${spec.size} is more than the ${spec.parts.length} parts`);
    }
  },
});

const gadgetWith = (spec: unknown) => liveObject({ apiVersion: "test.kindstack.dev/v1", kind: "Gadget", spec });
const one = [{ name: "wheel" }];
const valid = { size: 1, parts: one };

describe("parseObject", () => {
  it("refuses a number that may have been rounded as it was read, wherever it stands", () => {
    const spec = JSON.parse('{"size": 1, "parts": [{"name": "wheel"}], "any": {"deep": [1.5, 9007199254740993]}}');
    expect(() => parseObject(gadget, gadgetWith(spec))).toThrow(
      "spec.any.deep.1 is beyond 2^53, and not exact any more",
    );
    spec.any.deep[1] = Number.MAX_SAFE_INTEGER;
    expect(parseObject(gadget, gadgetWith(spec)).spec).toBe(spec);
  });

  const s3 = { type: "s3", bucket: "b", class: "hot" };
  it.each<[string, unknown, string]>([
    ["a wrong type", { size: "1", parts: one }, 'spec.size: "1" must be integer'],
    ["a number out of bounds", { size: 10, parts: one }, "spec.size: 10 must be <= 9"],
    ["an item of a list", { size: 1, parts: [...one, { name: 7 }] }, "spec.parts.1.name: 7 must be string"],
    ["too many items", { size: 1, parts: [1, 2, 3, 4].map(() => one[0]) }, "must not have more than 3 items"],
    ["a value that is none of those allowed", { ...valid, colour: "green" }, 'spec.colour: "green" must be'],
    ["a value by its key", { ...valid, sizes: { "a/b": "x" } }, 'spec.sizes.a/b: "x" must be integer'],
    ["a missing field", { parts: one }, "spec.size: missing, must be given"],
    ["a missing field of an item", { size: 1, parts: [{}] }, "spec.parts.0.name: missing, must be given"],
    ["none of some literals", { ...valid, form: "Wrong" }, 'spec.form: "Wrong" must be one of "round", "flat"'],
    ["a value of neither type", { ...valid, port: true }, "spec.port: true must be integer or must be string"],
    [
      "a literal that no form has",
      { ...valid, from: { type: "ftp" } },
      'spec.from.type: "ftp" must be one of "git", "s3"',
    ],
    ["a field of a form", { ...valid, from: { ...s3, bucket: 5 } }, "spec.from.bucket: 5 must be string"],
    ["literals inside a form", { ...valid, from: { ...s3, class: "x" } }, 'class: "x" must be one of "hot", "cold"'],
    ["a missing spec", undefined, "spec: missing, must be object"],
    ["a spec that is none", "text", 'spec: "text" must be object'],
    ["what only the kind's own rule can say", { size: 2, parts: one }, "spec.size: 2 is more than the 1 parts"],
  ])("refuses %s and names the field, its value and what is allowed", (_, spec, message) => {
    const parsing = () => parseObject(gadget, gadgetWith(spec));
    expect(parsing).toThrow(TerminalError);
    expect(parsing).toThrow(message);
  });

  it("says which values an enumeration allows", () => {
    expect(() => parseObject(gadget, gadgetWith({ ...valid, colour: "green" }))).toThrow(/red.*blue/);
  });
});

describe("what a killed update has made", () => {
  const owns = [{ apiVersion: "v1", kind: "Pod" }];
  const providers = [defineProvider("@acme/gadgets", {} as DynamicProvider)];
  const external = {
    findDrift: async () => ({ drifted: new Map(), unknown: new Map() }),
    removeUntracked: async () => {},
  };

  it.each([
    ["of Kubernetes objects alone", { owns }, true],
    ["of what the kind can search", { owns: [], capabilities: { external } }, true],
    ["of the kind's own providers, when it can search", { owns, capabilities: { providers, external } }, true],
    ["of the kind's own providers, when it cannot", { owns, capabilities: { providers } }, false],
    ["of neither", { owns: [] }, false],
    ["of plugins", { owns, capabilities: { sdkRuntime: true as const, external } }, false],
  ])("%s", (_what, definition, isFound) => {
    expect(adoptsAfterCrash({ ...gadget, capabilities: {}, ...definition })).toBe(isFound);
  });
});

it("statusOf is the object's status, or empty before there is one", () => {
  expect(statusOf({ ...tenantObject(), status: { observedGeneration: 3 } })).toEqual({ observedGeneration: 3 });
  expect(statusOf(tenantObject())).toEqual({});
});

import Type from "typebox";
import { describe, expect, it } from "vitest";
import type { LiveObject } from "../../../providers/kubernetes/client";
import { parseDeclared } from "../../../stacks/contract/declared";
import type { AnyKind } from "../../../stacks/contract/kind";
import { podSet } from "../../../stacks/kinds/podset/kind";

const part = Type.Object({ port: Type.Integer({ default: 80 }) });
const spec = Type.Object({
  size: Type.Integer({ default: 1 }),
  parts: Type.Array(part, { default: [] }),
  labels: Type.Optional(Type.Record(Type.String(), Type.String())),
});
const kind = { ...podSet, spec, validate: undefined } as unknown as AnyKind;
const parse = (given: object) => parseDeclared(kind, { metadata: { name: "a" }, spec: given } as unknown as LiveObject);

describe("an object that a file declares", () => {
  it("has the schema's defaults, and stays as it was itself", async () => {
    const given = { parts: [{}], labels: { any: "key" } };
    expect((await parse(given)).spec).toEqual({ size: 1, parts: [{ port: 80 }], labels: { any: "key" } });
    expect(given.parts).toEqual([{}]);
  });

  it.each([
    [{ sise: 2 }, "spec.sise: there is no such field"],
    [{ parts: [{}, { prot: 81 }] }, "spec.parts.1.prot: there is no such field"],
    [{ sise: 2, size: "2" }, "spec.sise: there is no such field"],
    [{ size: "2" }, 'spec.size: "2" must be integer'],
    [{ parts: "none" }, 'spec.parts: "none" must be array'],
  ])("is refused with the first wrong field: %j", async (given, message) => {
    await expect(parse(given)).rejects.toMatchObject({ reason: "Invalid", message });
  });
});

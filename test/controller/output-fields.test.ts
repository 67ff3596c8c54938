import { describe, expect, it } from "vitest";
import { outputFields } from "../../src/controller/output-fields";
import { composeStatus } from "../../src/controller/status";
import type { OutputsOf } from "../../stacks/contract/capabilities";
import type { AnyKind } from "../../stacks/contract/kind";
import type { KindObject } from "../../stacks/contract/object";
import { memcached } from "../../stacks/kinds/memcached/kind";
import { memcachedObject } from "../objects";

const resource = (name: string, outputs: Record<string, unknown>) => {
  return { urn: `urn:${name}`, type: "t", name, operation: "same" as const, outputs };
};
const object = { ...memcachedObject(), status: { url: "s3://a" } };
const giving = (give: (of: OutputsOf, object: KindObject) => unknown): AnyKind => ({
  ...memcached,
  capabilities: { outputs: { url: give } },
});

describe("fields of the status that outputs give", () => {
  it("are what the kind makes of the outputs of its resources, also of plugins", async () => {
    const kind = giving((of) => `${of("bucket")?.url}/${of("folder")?.path}${of("none")?.id ?? ""}`);
    const resources = [resource("bucket", { url: "s3://a" }), resource("folder", { path: "b" })];
    expect(await outputFields(kind, object, resources)).toEqual({ url: "s3://a/b" });
    expect(await outputFields(memcached, object, [])).toBeUndefined();
  });

  it("never show what the engine keeps as a secret", async () => {
    const all = giving((of) => of("password"));
    const outputs = { result: "[secret]", length: 3, of: ["[secret]", 1], data: { key: "[secret]", plain: "p" } };
    const shown = { length: 3, of: [1], data: { plain: "p" } };
    expect(await outputFields(all, object, [resource("password", outputs)])).toEqual({ url: shown });
  });

  it("stay until the next update, and go when it gives none", async () => {
    const kind = giving(() => "unused");
    const status = (change: object) =>
      composeStatus(
        kind,
        object,
        { objects: [], isSeen: () => true, unserved: () => undefined },
        change,
        new Date(),
        () => {},
      );
    expect(await status({})).toMatchObject({ url: "s3://a" });
    expect(await status({ outputs: { url: "s3://b" } })).toMatchObject({ url: "s3://b" });
    expect(await status({ outputs: { url: undefined } })).not.toHaveProperty("url");
  });
});

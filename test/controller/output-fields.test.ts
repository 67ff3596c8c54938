import { describe, expect, it } from "vitest";
import { OBJECT_STUB } from "../../providers/kubernetes/object";
import { outputFields } from "../../src/controller/output-fields";
import { composeStatus } from "../../src/controller/status";
import type { OutputsOf } from "../../stacks/contract/capabilities";
import type { AnyKind } from "../../stacks/contract/kind";
import { memcached } from "../../stacks/kinds/memcached/kind";

const resource = (name: string, outputs: Record<string, unknown>) => ({
  urn: `urn:${name}`,
  type: "t",
  name,
  operation: "same" as const,
  outputs,
});
const giving = (give: (of: OutputsOf) => unknown): AnyKind => ({
  ...memcached,
  capabilities: { outputs: { url: give } },
});

describe("fields of the status that outputs give", () => {
  it("are what the kind makes of the outputs of its resources, also of plugins", () => {
    const kind = giving((of) => `${of("bucket")?.url}/${of("folder")?.path}${of("none")?.id ?? ""}`);
    expect(outputFields(kind, [resource("bucket", { url: "s3://a" }), resource("folder", { path: "b" })])).toEqual({
      url: "s3://a/b",
    });
    expect(outputFields(memcached, [])).toBeUndefined();
  });

  it("never show what the engine keeps as a secret, nor the data of a Secret", () => {
    const all = giving((of) => [of("password"), of("secret")]);
    const manifest = { apiVersion: "v1", kind: "Secret", metadata: { name: "a" }, type: "Opaque", data: { p: "YQ==" } };
    const outputs = {
      __provider: OBJECT_STUB,
      manifest,
      fields: "f",
      uid: "u",
      drift: [{ field: "data.p", wanted: "YQ==" }],
    };
    const { data: _, ...shown } = manifest;
    expect(
      outputFields(all, [
        resource("password", { result: "[secret]", length: 3, of: ["[secret]", 1] }),
        resource("secret", outputs),
      ]),
    ).toEqual({
      url: [
        { length: 3, of: [1] },
        { manifest: shown, fields: "f", uid: "u" },
      ],
    });
  });

  it("stay until the next update, and go when it gives none", () => {
    const kind = giving(() => "unused");
    const object = {
      apiVersion: "cache.example.com/v1alpha1",
      kind: "Memcached",
      metadata: { name: "a", namespace: "b", uid: "u", resourceVersion: "1" },
      spec: { size: 1, containerPort: 1 },
      status: { url: "s3://a" },
    };
    const status = (change: object) =>
      composeStatus(kind, object, { objects: [], isSeen: () => true }, change, new Date());
    expect(status({})).toMatchObject({ url: "s3://a" });
    expect(status({ outputs: { url: "s3://b" } })).toMatchObject({ url: "s3://b" });
    expect(status({ outputs: { url: undefined } })).not.toHaveProperty("url");
  });
});

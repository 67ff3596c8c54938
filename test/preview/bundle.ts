import type * as pulumi from "@pulumi/pulumi";
import Type from "typebox";
import { KubernetesObject } from "../../providers/kubernetes/object";
import { defineKind } from "../../stacks/contract/kind";

/* A kind whose objects say outright which resources their program has, so that a test can generate them. */

const partSchema = Type.Object({
  /** The resource's name in the program. */
  resource: Type.String(),
  /** The object's name. */
  at: Type.String(),
  type: Type.Enum(["ConfigMap", "Secret"], { type: "string" }),
  text: Type.String(),
  label: Type.String(),
  /** The API server lets no one change the data. */
  immutable: Type.Boolean({ default: false }),
  /** The program says that a change of the data replaces the object. */
  replaces: Type.Boolean({ default: false }),
});
export type Part = Type.Static<typeof partSchema>;

/** A ConfigMap that its program has by the object's name. */
export const part = (at: string, changes: Partial<Part> = {}): Part => ({
  ...{ resource: at, at, type: "ConfigMap", text: "1", label: "x", immutable: false, replaces: false },
  ...changes,
});

/** What the kinds of previews' tests have in common. */
export const PREVIEW_KIND = {
  ...({ group: "preview.kindstack.dev", version: "v1", scope: "Namespaced" } as const),
  ...{ description: "For tests.", status: Type.Object({}), columns: [], directory: __dirname, report: () => ({}) },
};

export const bundle = defineKind({
  ...PREVIEW_KIND,
  ...{ kind: "Bundle", plural: "bundles", singular: "bundle" },
  spec: Type.Object({ parts: Type.Array(partSchema, { default: [] }) }),
  owns: ["ConfigMap", "Secret"].map((kind) => ({ apiVersion: "v1", kind })),
  program({ metadata, spec }, { owner }) {
    for (const { resource, at, type, text, label, immutable, replaces } of spec.parts) {
      const data = { text: type === "Secret" ? Buffer.from(text).toString("base64") : text };
      new KubernetesObject(resource, {
        owner,
        ...(replaces && { replaceOnChanges: ["data"] }),
        manifest: {
          apiVersion: "v1",
          kind: type,
          metadata: { name: at, namespace: metadata.namespace ?? "", labels: { label } },
          data,
          ...(immutable && { immutable }),
        },
      });
    }
  },
});

/** A kind whose program runs in the SDK's runtime: what one resource is, the other one knows only after the update. */
export const chain = defineKind({
  ...PREVIEW_KIND,
  ...{ kind: "Chain", plural: "chains", singular: "chain" },
  spec: Type.Object({ text: Type.String() }),
  owns: [{ apiVersion: "v1", kind: "ConfigMap" }],
  program({ metadata: { name, namespace = "" }, spec }, { owner }) {
    const configMap = (suffix: string, data: Record<string, pulumi.Input<string>>) =>
      new KubernetesObject(suffix, {
        owner,
        manifest: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: `${name}-${suffix}`, namespace }, data },
      });
    const first = configMap("first", { text: spec.text });
    configMap("second", { uid: first.uid });
  },
  capabilities: { sdkRuntime: true },
});

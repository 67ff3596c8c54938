import { type Convertible, defineKind, servedVersion } from "kindstack";
import { apiKeyProgram } from "./program";
import { type ApiKeySpec, apiKeySpec, apiKeySpecV1alpha1, apiKeyStatus } from "./schema";

/** Where v1alpha1 keeps what it has no field for, and the length of its keys. */
const LENGTH = "examples.kindstack.dev/length";
const LENGTH_OF_V1ALPHA1 = 16;

export const apiKey = defineKind({
  group: "examples.kindstack.dev",
  version: "v1",
  kind: "ApiKey",
  plural: "apikeys",
  singular: "apikey",
  scope: "Namespaced",
  description: "A key of an issuer that has a Pulumi plugin, in a Secret.",
  spec: apiKeySpec,
  status: apiKeyStatus,
  columns: [{ name: "Id", type: "string", jsonPath: ".status.id" }],
  owns: [{ apiVersion: "v1", kind: "Secret" }],
  directory: __dirname,
  program: apiKeyProgram,
  report: () => ({}),
  capabilities: {
    sdkRuntime: true,
    refreshEvery: 600,
    outputs: { id: (outputsOf, { metadata }) => outputsOf(`${metadata.name}/key`)?.keyId as string | undefined },
    versions: [
      servedVersion({
        version: "v1alpha1",
        spec: apiKeySpecV1alpha1,
        deprecationWarning: "examples.kindstack.dev/v1alpha1 ApiKey is deprecated; use examples.kindstack.dev/v1",
        toStored: ({ spec: { title }, annotations: { [LENGTH]: length, ...annotations } }) => ({
          spec: { label: title, length: Number(length ?? LENGTH_OF_V1ALPHA1) },
          annotations,
        }),
        fromStored: ({ spec: { label, length }, annotations }: Convertible<ApiKeySpec>) => ({
          spec: { title: label },
          annotations: { ...annotations, ...(length !== LENGTH_OF_V1ALPHA1 && { [LENGTH]: String(length) }) },
        }),
      }),
    ],
  },
});

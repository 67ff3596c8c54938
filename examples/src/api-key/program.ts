import type { KindObject, ProgramContext } from "kindstack";
import { KubernetesObject } from "kindstack/providers/kubernetes";
import { Key } from "./key";
import type { ApiKeySpec } from "./schema";

/** A key of an issuer that has a plugin, and a Secret with it. */
export function apiKeyProgram({ metadata, spec }: KindObject<ApiKeySpec>, { owner }: ProgramContext): void {
  const { name, namespace = "" } = metadata;
  const key = new Key(`${name}/key`, { label: spec.label, length: spec.length });
  new KubernetesObject(`${name}/secret`, {
    owner,
    manifest: {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: `${name}-key`, namespace },
      stringData: { key: key.value },
    },
  });
}

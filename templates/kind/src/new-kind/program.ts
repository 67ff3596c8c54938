import type { KindObject, ProgramContext } from "kindstack";
import { KubernetesObject } from "kindstack/providers/kubernetes";
import type { NewKindSpec } from "./schema";

/** A ConfigMap with the text. */
export function newKindProgram({ metadata, spec }: KindObject<NewKindSpec>, { owner }: ProgramContext): void {
  const { name, namespace = "" } = metadata;
  new KubernetesObject(`configmap/${name}`, {
    owner,
    manifest: {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: `${name}-new-kind`, namespace },
      data: { text: spec.text },
    },
  });
}

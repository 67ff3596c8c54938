import type { KindObject } from "kindstack";
import type { LiveObject } from "kindstack/providers/kubernetes";
import type { NewKindSpec, NewKindStatus } from "./schema";

export function newKindReport(_object: KindObject<NewKindSpec>, owned: readonly LiveObject[]): NewKindStatus {
  const configMap = owned.find(({ kind, metadata }) => kind === "ConfigMap" && !metadata.deletionTimestamp);
  return { configMap: configMap?.metadata.name ?? "" };
}

import type { KindObject } from "kindstack";
import type { LiveObject } from "kindstack/providers/kubernetes";
import { labelsOf } from "./program";
import type { WebServiceSpec, WebServiceStatus } from "./schema";

export function webServiceReport(
  { metadata }: KindObject<WebServiceSpec>,
  owned: readonly LiveObject[],
): WebServiceStatus {
  const deployment = owned.find(({ kind }) => kind === "Deployment");
  const { replicas = 0, readyReplicas = 0 } = (deployment?.status ?? {}) as Partial<WebServiceStatus>;
  const selector = Object.entries(labelsOf(metadata.name)).map(([label, value]) => `${label}=${value}`);
  return { replicas, readyReplicas, selector: selector.join(",") };
}

import type { LiveObject } from "../../providers/kubernetes/index";
import type { Activity, KindCondition, KindObject } from "../contract/index";
import type { MemcachedSpec } from "./schema";

interface DeploymentStatus {
  observedGeneration?: number;
  updatedReplicas?: number;
  availableReplicas?: number;
  conditions?: { type: string; status: string; message?: string }[];
}

/** `Available`, `Progressing` and `Degraded`, with the reasons and messages of the operator that this kind is from. */
export function memcachedConditions(
  { metadata: { name, generation, deletionTimestamp }, spec, status }: KindObject<MemcachedSpec>,
  owned: readonly LiveObject[],
  activity: Activity,
): KindCondition[] {
  if (deletionTimestamp) return finalizing(name, activity);
  const deployment = owned.find(({ kind }) => kind === "Deployment");
  const live = (deployment?.status ?? {}) as DeploymentStatus;
  const wanted = (deployment?.spec as { replicas?: number } | undefined)?.replicas;
  const resizing = deployment !== undefined && wanted !== spec.size;
  const reason = resizing ? "Resizing" : "Reconciling";
  const settled =
    deployment !== undefined &&
    !resizing &&
    live.observedGeneration === deployment.metadata.generation &&
    live.updatedReplicas === spec.size &&
    live.availableReplicas === spec.size;
  const known = status?.conditions !== undefined && generation === status.observedGeneration;
  return [
    available(name, spec.size, deployment && live, reason, activity),
    settled
      ? { type: "Progressing", status: "False", reason, message: `All ${spec.size} instances are available` }
      : {
          type: "Progressing",
          status: "True",
          reason,
          message: known
            ? `${live.availableReplicas ?? 0} of ${spec.size} instances are available`
            : "Starting reconciliation",
        },
    activity.failure === undefined
      ? { type: "Degraded", status: "False", reason, message: "Nothing is wrong" }
      : { type: "Degraded", status: "True", reason, message: activity.failure },
  ];
}

/** Follows the Deployment's own condition; before there is one, says what keeps it from being there. */
function available(
  name: string,
  size: number,
  deployment: DeploymentStatus | undefined,
  reason: string,
  { failure }: Activity,
): KindCondition {
  const own = deployment?.conditions?.find(({ type }) => type === "Available");
  if (failure !== undefined) {
    const attempt = reason === "Resizing" ? "update the size" : "create Deployment";
    return {
      type: "Available",
      status: own?.status === "True" ? "True" : "False",
      reason,
      message: `Failed to ${attempt} for the custom resource (${name}): (${failure})`,
    };
  }
  if (own === undefined) return { type: "Available", status: "Unknown", reason, message: "Starting reconciliation" };
  if (own.status === "True") {
    return {
      type: "Available",
      status: "True",
      reason,
      message: `Deployment for custom resource (${name}) with ${size} replicas created successfully`,
    };
  }
  return { type: "Available", status: "False", reason, message: own.message ?? "The Deployment is not available" };
}

function finalizing(name: string, { failure }: Activity): KindCondition[] {
  const message =
    failure === undefined
      ? `Performing finalizer operations for the custom resource: ${name}`
      : `Finalizer operations for custom resource ${name} failed: ${failure}`;
  return [
    { type: "Available", status: "False", reason: "Finalizing", message },
    { type: "Progressing", status: "True", reason: "Finalizing", message },
    { type: "Degraded", status: failure === undefined ? "Unknown" : "True", reason: "Finalizing", message },
  ];
}

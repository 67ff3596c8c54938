import type { V1DeploymentStatus } from "@kubernetes/client-node";
import { failureIn, type LiveObject } from "../../../providers/kubernetes/index";
import { type KindCondition, type KindObject, leavesField } from "../../contract/index";
import type { MemcachedSpec } from "./schema";

type State = [status: KindCondition["status"], message: string];

/** `Available`, `Progressing` and `Degraded`, with the reasons and messages of the operator that this kind is from. */
export function memcachedConditions(
  { metadata, spec, status }: KindObject<MemcachedSpec>,
  owned: readonly LiveObject[],
  failure: string | undefined,
): KindCondition[] {
  const { name, generation, deletionTimestamp } = metadata;
  if (deletionTimestamp) {
    const message =
      failure === undefined
        ? `Performing finalizer operations for the custom resource: ${name}`
        : `Finalizer operations for custom resource ${name} failed: ${failure}`;
    return conditions("Finalizing", {
      Available: ["False", message],
      Progressing: ["True", message],
      Degraded: [failure === undefined ? "Unknown" : "True", message],
    });
  }
  const deployment = owned.find(({ kind }) => kind === "Deployment");
  const live = (deployment?.status ?? {}) as V1DeploymentStatus;
  const wanted = (deployment?.spec as { replicas?: number } | undefined)?.replicas;
  // An autoscaler may have the number of replicas.
  const isLeft = deployment !== undefined && leavesField({ metadata }, deployment, "spec.replicas");
  const size = isLeft && wanted !== undefined ? wanted : spec.size;
  const isResizing = deployment !== undefined && wanted !== size;
  const isSettled =
    wanted === size &&
    live.observedGeneration === deployment?.metadata.generation &&
    live.updatedReplicas === size &&
    live.availableReplicas === size;
  const isKnown = status?.conditions !== undefined && generation === status.observedGeneration;
  const progress = isKnown ? `${live.availableReplicas ?? 0} of ${size} instances are available` : STARTING;
  const attempt = isResizing ? "update the size" : "create Deployment";
  const failed = failure && `Failed to ${attempt} for the custom resource (${name}): (${failure})`;
  const trouble = failure ?? (deployment && failureIn(deployment));
  return conditions(isResizing ? "Resizing" : "Reconciling", {
    Available: available(name, size, live, failed),
    Progressing: isSettled ? ["False", `All ${size} instances are available`] : ["True", progress],
    Degraded: trouble === undefined ? ["False", "Nothing is wrong"] : ["True", trouble],
  });
}

const STARTING = "Starting reconciliation";

/** Follows the Deployment's own condition; without a Deployment, gives the reason for its absence. */
function available(name: string, size: number, deployment: V1DeploymentStatus, failed: string | undefined): State {
  const { status, message } = deployment.conditions?.find(({ type }) => type === "Available") ?? {};
  if (failed !== undefined) return [status === "True" ? "True" : "False", failed];
  if (status === undefined) return ["Unknown", STARTING];
  return status === "True"
    ? ["True", `Deployment for custom resource (${name}) with ${size} replicas created successfully`]
    : ["False", message ?? "The Deployment is not available"];
}

function conditions(reason: string, states: Record<string, State>): KindCondition[] {
  return Object.entries(states).map(([type, [status, message]]) => ({ type, status, reason, message }));
}

import type { V1PodStatus } from "@kubernetes/client-node";
import { groupOf, typeName } from "./object-types";
import type { LiveObject, Manifest } from "./types";

/*
 * Whether an object works, by its status. Ported from kstatus, the library that Flux and cli-utils go by: the package
 * pkg/kstatus/status of sigs.k8s.io/cli-utils v0.37.2 (Apache-2.0).
 *
 * It differs where kstatus says less than people expect: a Pod that failed has failed, and a Service of the type LoadBalancer
 * works when it has an address. What a type says of a failure in its conditions is told, also where kstatus does not read them
 * ({@link FAILURES}). A claim without a volume does not count, as it may wait for its first consumer, which then
 * does not work either. A Pod that fits on no node waits for one, however long: there is no clock in here.
 */

/** Whether an object works, in the words of kstatus. */
export interface Health {
  status: "Current" | "InProgress" | "Failed" | "Terminating";
  /** What is waited for, or what failed; empty for `Current`. */
  message: string;
}

interface Status {
  conditions?: StatusCondition[];
  observedGeneration?: number;
  [field: string]: unknown;
}

interface StatusCondition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
}

type Rule = (spec: Fields, status: Status, object: LiveObject) => Health;
type Fields = Record<string, unknown>;

const ABNORMAL = ["Reconciling", "Stalled"];
const CURRENT: Health = { status: "Current", message: "" };

/** Whether what the API server shows of this type as applied may still have to begin to work. */
export function hasHealth(type: Manifest): boolean {
  const group = groupOf(type.apiVersion);
  return typeName(type) in RULES || (group.includes(".") && !group.endsWith(".k8s.io"));
}

/** Whether an object works as it is now specified. Pure. */
export function healthOf(object: LiveObject): Health {
  const { deletionTimestamp, generation } = object.metadata;
  const status = (object.status ?? {}) as Status;
  if (deletionTimestamp) return { status: "Terminating", message: "it is being deleted" };
  const { observedGeneration } = status;
  if (observedGeneration !== undefined && observedGeneration !== generation) {
    return inProgress("its controller has not seen the last change");
  }
  const abnormal = conditionsOf(status).find(({ type, status }) => ABNORMAL.includes(type) && status === "True");
  if (abnormal !== undefined) return (abnormal.type === "Stalled" ? failed : inProgress)(textOf(abnormal));
  const rule = RULES[typeName(object)] ?? byReadyCondition;
  const health = rule((object.spec ?? {}) as Fields, status, object);
  const failure = failureCondition(object);
  if (failure === undefined) return health;
  return health.status === "Failed"
    ? failed([...new Set([health.message, textOf(failure)])].join(": "))
    : inProgress(textOf(failure));
}

/** What an object says of its failure, whether that may pass or not; `undefined` where it tells of none. Pure. */
export function failureIn(object: LiveObject): string | undefined {
  const { status, message } = healthOf(object);
  return status === "Failed" || (status === "InProgress" && failureCondition(object)) ? message : undefined;
}

/** The condition of {@link FAILURES} that an object has, if its controller has seen the last change. */
function failureCondition(object: LiveObject): StatusCondition | undefined {
  const status = (object.status ?? {}) as Status;
  if ((status.observedGeneration ?? object.metadata.generation) !== object.metadata.generation) return undefined;
  const failures = FAILURES[typeName(object)] ?? [];
  return conditionsOf(status).find((condition) =>
    failures.some(
      ({ type, status, reasons }) =>
        condition.type === type &&
        condition.status === status &&
        (reasons === undefined || reasons.includes(condition.reason ?? "")),
    ),
  );
}

/** By type, the conditions that tell of a failure while its controller tries again; with `reasons`, only for these. */
const FAILURES: Readonly<Record<string, readonly { type: string; status: string; reasons?: readonly string[] }[]>> = {
  "apps/v1/Deployment": [{ type: "ReplicaFailure", status: "True" }],
  "apps/v1/ReplicaSet": [{ type: "ReplicaFailure", status: "True" }],
  "v1/Pod": [
    { type: "PodResizePending", status: "True", reasons: ["Infeasible"] },
    { type: "PodResizeInProgress", status: "True", reasons: ["Error"] },
  ],
  "v1/Service": [{ type: "LoadBalancerPortsError", status: "True" }],
  "v1/PersistentVolumeClaim": [
    { type: "ControllerResizeError", status: "True" },
    { type: "NodeResizeError", status: "True" },
    { type: "ModifyVolumeError", status: "True" },
  ],
  "policy/v1/PodDisruptionBudget": [{ type: "DisruptionAllowed", status: "False", reasons: ["SyncFailed"] }],
  "apiextensions.k8s.io/v1/CustomResourceDefinition": [
    { type: "NonStructuralSchema", status: "True" },
    { type: "KubernetesAPIApprovalPolicyConformant", status: "False" },
  ],
};

const deployment: Rule = (spec, status) => {
  const count = countIn(status);
  const wanted = numberOf(spec.replicas, 1);
  const progressing = conditionIn(status, "Progressing");
  if (progressing?.reason === "ProgressDeadlineExceeded") return failed(textOf(progressing));
  // Without a deadline the controller does not report progress.
  const hasDeadline = numberOf(spec.progressDeadlineSeconds, NO_DEADLINE) !== NO_DEADLINE;
  const isComplete = progressing?.status === "True" && progressing.reason === "NewReplicaSetAvailable";
  return (
    fewer("made", count("replicas"), wanted) ??
    fewer("up to date", count("updatedReplicas"), wanted) ??
    surplus(count("replicas"), wanted) ??
    fewer("available", count("availableReplicas"), count("updatedReplicas")) ??
    fewer("ready", count("readyReplicas"), wanted) ??
    (hasDeadline && !isComplete ? inProgress("its new ReplicaSet is not available") : undefined) ??
    (conditionIn(status, "Available")?.status === "True" ? CURRENT : inProgress("it is not available"))
  );
};
const NO_DEADLINE = 2 ** 31 - 1;

const replicaSet: Rule = (spec, status) => {
  const count = countIn(status);
  const wanted = numberOf(spec.replicas, 1);
  return (
    fewer("labelled", count("fullyLabeledReplicas"), wanted) ??
    fewer("available", count("availableReplicas"), wanted) ??
    fewer("ready", count("readyReplicas"), wanted) ??
    surplus(count("replicas"), wanted) ??
    CURRENT
  );
};

const statefulSet: Rule = (spec, status) => {
  const { type, rollingUpdate } = (spec.updateStrategy ?? {}) as { type?: string; rollingUpdate?: Fields };
  if (type === "OnDelete") return CURRENT;
  const count = countIn(status);
  const wanted = numberOf(spec.replicas, 1);
  const partition = rollingUpdate?.partition;
  const rollout = () => {
    if (typeof partition === "number") return fewer("up to date", count("updatedReplicas"), wanted - partition);
    const isSame = (status.currentRevision ?? "") === (status.updateRevision ?? "");
    const replacing = isSame ? undefined : inProgress("its Pods are being replaced");
    return fewer("up to date", count("currentReplicas"), wanted) ?? replacing;
  };
  return (
    fewer("made", count("replicas"), wanted) ??
    fewer("ready", count("readyReplicas"), wanted) ??
    surplus(count("replicas"), wanted) ??
    rollout() ??
    CURRENT
  );
};

const daemonSet: Rule = (_spec, status) => {
  const count = countIn(status);
  const { desiredNumberScheduled: wanted, observedGeneration } = status;
  if (observedGeneration === undefined || typeof wanted !== "number") return inProgress(UNSEEN);
  return (
    fewer("scheduled", count("currentNumberScheduled"), wanted) ??
    fewer("up to date", count("updatedNumberScheduled"), wanted) ??
    fewer("available", count("numberAvailable"), wanted) ??
    fewer("ready", count("numberReady"), wanted) ??
    CURRENT
  );
};

const pod: Rule = (_spec, status) => {
  const { phase, containerStatuses = [], initContainerStatuses = [], message = "" } = status as V1PodStatus;
  const waitingOf = (containers: typeof containerStatuses) =>
    containers.flatMap(({ name, state }) => (state?.waiting ? [{ name, ...state.waiting }] : []));
  const waiting = waitingOf(containerStatuses);
  const unscheduled = conditionIn(status, "PodScheduled");
  const ready = conditionIn(status, "Ready");
  const disruption = conditionIn(status, "DisruptionTarget");
  if (phase === undefined) return inProgress(UNSEEN);
  if (phase === "Succeeded" || (phase === "Running" && ready?.status === "True")) return CURRENT;
  const isDisrupted = disruption?.status === "True";
  if (phase === "Failed") return failed(message || (isDisrupted ? textOf(disruption) : "its containers have failed"));
  const looping = waiting.find(({ reason }) => reason === "CrashLoopBackOff");
  if (phase === "Running" && looping) return failed(`its container ${looping.name} crashes again and again`);
  if (unscheduled?.status === "False") return inProgress(textOf(unscheduled));
  const waits = [...waitingOf(initContainerStatuses), ...waiting].find(
    ({ reason }) => reason !== undefined && !BEGINNING.includes(reason),
  );
  if (waits)
    return inProgress(`its container ${waits.name}: ${waits.reason}${waits.message ? `: ${waits.message}` : ""}`);
  if (phase !== "Running") return inProgress("it has not started");
  return inProgress(`it runs but is not ready${ready?.message ? `: ${ready.message}` : ""}`);
};
/** Why a container waits while nothing is wrong. */
const BEGINNING = ["ContainerCreating", "PodInitializing"];

const job: Rule = (_spec, status) => {
  if (conditionIn(status, "Complete")?.status === "True") return CURRENT;
  for (const type of ["Failed", "FailureTarget"]) {
    const failure = conditionIn(status, type);
    if (failure?.status === "True") return failed(textOf(failure));
  }
  return status.startTime === undefined ? inProgress("it has not started") : CURRENT;
};

const service: Rule = (spec, status) => {
  if (spec.type !== "LoadBalancer") return CURRENT;
  const { ingress = [] } = (status.loadBalancer ?? {}) as { ingress?: unknown[] };
  return ingress.length > 0 ? CURRENT : inProgress("it has no address of a load balancer");
};

const claim: Rule = (_spec, { phase }) => (phase === "Lost" ? failed("its volume is lost") : CURRENT);

const definition: Rule = (_spec, status) => {
  const [names, established] = [conditionIn(status, "NamesAccepted"), conditionIn(status, "Established")];
  if (names?.status === "False") return failed(textOf(names));
  if (established?.status === "True") return CURRENT;
  const isRefused = established?.status === "False" && established.reason !== "Installing";
  return isRefused ? failed(textOf(established)) : inProgress("it is not served yet");
};

/** Of types that kstatus does not know. */
const byReadyCondition: Rule = (_spec, status) => {
  const ready = conditionIn(status, "Ready");
  return ready === undefined || ready.status === "True" ? CURRENT : inProgress(textOf(ready));
};

const RULES: Readonly<Record<string, Rule>> = {
  "policy/v1/PodDisruptionBudget": () => CURRENT, // its condition tells of a controller's bookkeeping
  "apps/v1/Deployment": deployment,
  "apps/v1/ReplicaSet": replicaSet,
  "apps/v1/StatefulSet": statefulSet,
  "apps/v1/DaemonSet": daemonSet,
  "v1/Pod": pod,
  "batch/v1/Job": job,
  "v1/Service": service,
  "v1/PersistentVolumeClaim": claim,
  "apiextensions.k8s.io/v1/CustomResourceDefinition": definition,
};

const UNSEEN = "its controller has not seen it";

/** Types of others may call something else so. */
function conditionsOf({ conditions }: Status) {
  return Array.isArray(conditions) ? conditions : [];
}

function conditionIn(status: Status, type: string) {
  return conditionsOf(status).find((condition) => condition.type === type);
}

function textOf({ type, reason, message }: StatusCondition): string {
  return message || reason || `its condition ${type}`;
}

/** The numbers of a status by their fields; 0 for what is not there. */
function countIn(status: Status): (field: string) => number {
  return (field) => numberOf(status[field], 0);
}

function numberOf(value: unknown, otherwise: number): number {
  return typeof value === "number" ? value : otherwise;
}

function fewer(what: string, are: number, wanted: number): Health | undefined {
  return are < wanted ? inProgress(`${are} of ${wanted} are ${what}`) : undefined;
}

function surplus(are: number, wanted: number): Health | undefined {
  return are > wanted ? inProgress(`${are - wanted} too many are ending`) : undefined;
}

function inProgress(message: string): Health {
  return { status: "InProgress", message };
}

function failed(message: string): Health {
  return { status: "Failed", message };
}

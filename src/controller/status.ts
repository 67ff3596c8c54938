import { isDeepStrictEqual } from "node:util";
import { type Failure, failureOf } from "../../providers/errors";
import type { KubernetesClient, LiveObject } from "../../providers/kubernetes/client";
import type { KindCondition } from "../../stacks/contract/capabilities";
import { CodeEndedError } from "../../stacks/contract/code-ended";
import { type Condition, findCondition, mergeConditions, type NewCondition } from "../../stacks/contract/condition";
import { type AnyKind, parseServed, statusOf } from "../../stacks/contract/kind";
import type { Mode } from "../../stacks/contract/mode";
import type { CommonStatus, KindObject } from "../../stacks/contract/object";
import { isPaused } from "../../stacks/contract/readiness";
import { isUnapplied } from "./conditions";
import { clipped } from "./describe";
import { findUnready, isOfReadiness, type OwnedObjects, readyConditions, type Unready } from "./ready";

/** What is new; everything else stays as the object has it. */
export interface StatusChange {
  conditions?: readonly NewCondition[];
  observedGeneration?: number;
  stack?: CommonStatus["stack"];
  lastHandledReconcile?: string;
  /** The kind's fields that outputs give; without, they stay as they are. */
  outputs?: object;
  mode?: Mode;
}

/** What a kind says of an object; the report only of one that can be parsed. */
interface Answer {
  unready: Unready;
  report?: Report | undefined;
}

interface Report {
  /** Without, the fields stay as they are. */
  reported?: object;
  conditions: KindCondition[];
}

/**
 * The whole status of an object: the standard fields, and the kind's fields from the object and its live resources.
 *
 * An object that cannot be parsed keeps the kind's fields of its last status.
 *
 * @param ended told that the kind's code has not answered
 */
export async function composeStatus(
  kind: AnyKind,
  object: LiveObject,
  owned: OwnedObjects,
  change: StatusChange,
  now: Date,
  ended: (error: CodeEndedError) => void,
): Promise<CommonStatus> {
  const {
    conditions: before = [],
    observedGeneration,
    stack,
    lastHandledReconcile,
    mode: _,
    ...own
  } = statusOf(object);
  const { conditions: observed = [], outputs, mode, ...changed } = change;
  const pauses = observed.some(({ type }) => type === "Paused");
  const lasting = before.filter((condition) => !isOfReadiness(condition));
  const stated = mergeConditions(lasting, observed, now)
    .filter(saysSomething)
    .filter(({ type }) => type !== "Paused" || pauses); // each reconcile that the pause stops says so again
  const former = { observedGeneration, stack, lastHandledReconcile };
  const common = present({ ...former, ...present(changed), mode: mode === "Apply" ? undefined : mode });
  let { unready, report }: Answer = { unready: { waiting: [], failed: [] } };
  try {
    ({ unready, report } = await ask(kind, { ...object, status: { ...own, ...common, conditions: stated } }, owned));
  } catch (error) {
    if (!(error instanceof CodeEndedError)) throw error;
    ended(error);
    report = { conditions: [{ type: "Ready", status: "False", reason: error.reason, message: error.message }] };
  }
  const standard = mergeConditions(stated, readyConditions(stated, unready, common.stack), now);
  if (report === undefined) return { ...own, ...common, conditions: inOrder(standard, before) };
  const generation = object.metadata.generation ?? 0;
  const { reported = own } = report;
  const special = report.conditions.map(({ message, ...condition }) => {
    return { ...condition, message: clipped(message), observedGeneration: generation };
  });
  return {
    ...present(reported),
    ...present(outputs ?? onlyOutputs(kind, own)),
    ...common,
    conditions: inOrder(mergeConditions(standard, special, now), before),
  };
}

/** Of the kind's own fields, those that outputs give. */
function onlyOutputs({ capabilities: { outputs = {} } }: AnyKind, own: object): object {
  return Object.fromEntries(Object.entries(own).filter(([field]) => Object.hasOwn(outputs, field)));
}

/** @throws CodeEndedError */
async function ask(kind: AnyKind, object: LiveObject, owned: OwnedObjects): Promise<Answer> {
  const parsed = await parse(kind, object);
  const { stack, conditions = [] } = statusOf(object);
  // Asked for together: where the kind's code is in another process, that is one message.
  const [unready, report] = await Promise.all([
    findUnready(kind, parsed, stack, owned),
    parsed && reportOf(kind, parsed, owned.objects, failureIn(conditions)),
  ]);
  return { unready, report };
}

/** What the kind itself says of an object. The author of a kind can mend one that fails; the rest of the status is as it is. */
async function reportOf(
  kind: AnyKind,
  parsed: KindObject,
  owned: readonly LiveObject[],
  failure: string | undefined,
): Promise<Report> {
  try {
    const [reported, conditions = []] = await Promise.all([
      kind.report(parsed, owned),
      kind.capabilities.conditions?.(parsed, owned, failure),
    ]);
    return { reported, conditions };
  } catch (error) {
    if (error instanceof CodeEndedError) throw error;
    return { conditions: [unreadable(kind, failureOf(error))] };
  }
}

function unreadable(
  { kind }: AnyKind,
  { errorClass, reason, message: cause }: Pick<Failure, "errorClass" | "reason" | "message">,
): KindCondition {
  const isOwn = errorClass === "bug" || reason === "InternalError";
  const message = `the report of ${kind} fails: ${cause}`;
  return { type: "Ready", status: "False", reason: isOwn ? "InternalError" : reason, message };
}

async function parse(kind: AnyKind, object: LiveObject): Promise<KindObject | undefined> {
  try {
    return await parseServed(kind, object);
  } catch (error) {
    if (error instanceof CodeEndedError) throw error;
    return undefined;
  }
}

/** The most wanted conditions come first. A condition that another condition replaced for a while keeps its time of `before`. */
const FIRST = ["Stalled", "Reconciling", "Synced", "Ready"];

function inOrder(conditions: Condition[], before: Condition[]): Condition[] {
  return conditions
    .map((condition) => {
      const was = findCondition(before, condition.type);
      return was?.status === condition.status
        ? { ...condition, lastTransitionTime: was.lastTransitionTime }
        : condition;
    })
    .sort((a, b) => FIRST.indexOf(b.type) - FIRST.indexOf(a.type));
}

/** Writes a status if it differs from what the object has; returns the object as it then is. */
export async function writeStatus(
  client: KubernetesClient,
  object: LiveObject,
  status: CommonStatus,
): Promise<LiveObject> {
  if (isDeepStrictEqual(status, statusOf(object))) return object;
  return client.replaceStatus(object, status);
}

/**
 * Conditions that are present only while they are `True`, as in kstatus and Flux ("abnormal-true"): `False` would add nothing
 * to `Synced`, and would be two thirds of a small object's status.
 */
const ABNORMAL = ["Reconciling", "Stalled", "DriftUnknown"];

function saysSomething({ type, status }: Condition): boolean {
  return status !== "False" || !ABNORMAL.includes(type);
}

/** Why the last update or destroy failed, as `Synced` says it. */
function failureIn(conditions: Condition[]): string | undefined {
  const synced = findCondition(conditions, "Synced");
  if (synced?.status !== "False" || isUnapplied(synced) || synced.reason === "Deleting" || isPaused(synced)) {
    return undefined;
  }
  return synced.message;
}

/** Leaves out what is undefined, and empty lists: the API server drops a list when an apply removes its last item. */
function present(fields: object): CommonStatus {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined && !(Array.isArray(value) && value.length === 0)),
  );
}

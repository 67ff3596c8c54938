import { shortened } from "../../providers/shortened";
import { objectKey, parseObjectId } from "../../stacks/contract/object";
import type { OpMap, UpResult } from "../automation/engine";
import type { UpdateFailure } from "../automation/event-log";
import { describeDeleted, type StackResource } from "../automation/event-log";
import type { ResourcePlan } from "../plan/resource-plan";
import { describeChange, visibleLines } from "../text/plain-text";

const MAX_MESSAGE = 2_000;

/** What a condition takes of a text. What that quotes of objects and answers has no effect on the terminals that show it. */
export function clipped(text: string): string {
  return shortened(visibleLines(text), MAX_MESSAGE);
}

/** Failures, for conditions and Events. */
export function describeFailures(failures: readonly Pick<UpdateFailure, "resource" | "message">[]): string {
  return clipped(failures.map(({ resource, message }) => (resource ? `${resource}: ${message}` : message)).join("; "));
}

/** So many of several texts, and how many more there are. */
const NAMED = 5;

/** Several texts in one, for conditions and Events. */
export function describeAll(texts: readonly string[]): string {
  const more = texts.length - NAMED;
  return clipped([...texts.slice(0, NAMED), ...(more > 0 ? [`and ${more} more`] : [])].join("; "));
}

/** How an attempt with these failures ended: retrying by the clock is useless where all wait, or need the user. */
export function outcomeOf(
  failures: readonly Pick<UpdateFailure, "errorClass">[],
): "pending" | "terminal" | "retryable" {
  const classes = new Set(failures.map(({ errorClass }) => errorClass));
  if (classes.size === 0 || classes.has("retryable") || classes.has("bug")) return "retryable";
  return classes.has("pending") ? "pending" : "terminal";
}

/** {@link describeChanges} of an operation. What was there before its creation is adopted, as the history has it. */
export function describeResult(result: Pick<UpResult, "summary" | "resources" | "deleted" | "gone">): string {
  const isAdopted = ({ operation, outputs }: StackResource) => operation === "create" && outputs.created === false;
  const adopt = result.resources.filter(isAdopted).length;
  const { create = 0, ...others } = result.summary.resourceChanges;
  return describeChanges({ ...others, create: create - adopt, adopt }, describeDeleted(result));
}

/** `2 created, 1 deleted: Namespace namespace/acme`, for Events; empty when nothing changed. */
export function describeChanges(changes: OpMap & { adopt?: number }, deleted: readonly string[]): string {
  const words = { create: "created", adopt: "adopted", update: "updated", replace: "replaced", delete: "deleted" };
  const counts = Object.entries(words)
    .flatMap(([operation, word]) => {
      const count = changes[operation as keyof typeof words];
      return count ? [`${count} ${word}`] : [];
    })
    .join(", ");
  return [counts, describeAll(deleted)].filter(Boolean).join(": ");
}

/** `Deployment default/web`: an object by its id. */
export function describeId(id: string): string {
  const { kind, ...metadata } = parseObjectId(id);
  return `${kind} ${objectKey(metadata)}`;
}

const SHOWN_FIELDS = 3;

/**
 * `update Deployment deployment/web: spec.replicas 3 → 1`: what would happen to a resource. Values of what is not the object's yet
 * are not in it: those who may read a status need not be allowed to get that.
 */
export function describePlanned({ operation, type, name, fields: all }: ResourcePlan): string {
  const fields = operation === "create" ? [] : all;
  const shown = fields.slice(0, SHOWN_FIELDS).map(({ path, before, after }) => {
    const [from, to] = describeChange(before, after);
    return `${path} ${operation === "adopt" ? "" : `${from} `}→ ${to}`;
  });
  const more = fields.length > SHOWN_FIELDS ? [`${fields.length - SHOWN_FIELDS} more fields`] : [];
  const changes = [...shown, ...more].join(", ");
  return `${operation} ${type} ${name}${changes && `: ${changes}`}`;
}

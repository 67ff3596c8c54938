import { ADMISSION } from "../../providers/kubernetes/field-drift";
import { isObjectOutputs } from "../../providers/kubernetes/object";
import { MASKED } from "../../providers/literal";
import type { FieldDrift } from "../../providers/provider";
import { objectKey, parseObjectId } from "../../stacks/contract/object";
import { driftIn, type StackResource } from "../automation/event-log";
import { shortChange } from "../text/plain-text";

/** A change by another client that an update was to correct. */
export interface Revert {
  /** Resource, field and manager of the change: repeated reverts have the same key. */
  key: string;
  /** The repair in words, for Events; absent where a poll has its own words. */
  repaired?: string;
  /** The state of a conflict over it. */
  conflict: string;
}

const LONGEST_VALUE = 60;

/**
 * The drift that an update has corrected.
 *
 * @param missing the ids of objects that were deleted
 * @param polled the words of polls, for drift that no watch shows
 */
export function revertsIn(
  resources: readonly StackResource[],
  missing: readonly string[],
  polled: string | undefined,
): Revert[] {
  const fields = resources.flatMap((resource) =>
    (resource.corrected ?? []).map((drift) => revertOf(resource, drift, polled)),
  );
  const deletions = missing.map((id) => {
    const { kind, ...metadata } = parseObjectId(id);
    const what = `${kind} ${objectKey(metadata)}`;
    return {
      key: `${id} is deleted`,
      repaired: `${what} was deleted`,
      conflict: `${what} is deleted by another client`,
    };
  });
  const polls = polled === undefined ? [] : [{ key: polled, repaired: polled, conflict: `again and again, ${polled}` }];
  return [...fields, ...deletions, ...polls];
}

/** Fields that admission changed in the update's own write: each further write would have the same result. */
export function alterationsIn(resources: readonly StackResource[]): Revert[] {
  return resources.flatMap((resource) => driftIn(resource.outputs).map((drift) => revertOf(resource, drift)));
}

function revertOf(
  { urn, name, outputs }: StackResource,
  { field, by, ...values }: FieldDrift,
  polled?: string,
): Revert {
  const isObject = isObjectOutputs(outputs);
  const what = isObjectOutputs(outputs) ? `${outputs.manifest.kind} ${objectKey(outputs.manifest.metadata)}` : name;
  const hasSecret = JSON.stringify(outputs).includes(MASKED);
  const shown = hasSecret ? ["…", "…"] : shortChange(values.live, values.wanted, LONGEST_VALUE);
  const live = values.live === undefined ? "nothing" : shown[0];
  const wanted = shown[1];
  const who = by === ADMISSION ? ": admission changed it" : by === undefined ? "" : `: set by ${by}`;
  return {
    key: `${urn} ${field} ${by ?? ""}`,
    ...((isObject || polled === undefined) && {
      repaired: `${what}: ${field} ${live} → ${wanted}${by === undefined ? "" : ` (${by})`}`,
    }),
    conflict: `${what}: ${field} is ${live} in place of ${wanted}${who}`,
  };
}

import { ADMISSION } from "../../providers/kubernetes/field-drift";
import { isObjectOutputs } from "../../providers/kubernetes/object";
import { MASKED } from "../../providers/literal";
import type { FieldDrift } from "../../providers/provider";
import { objectKey, parseObjectId } from "../../stacks/contract/object";
import { driftIn, type StackResource } from "../automation/event-log";
import { shortValue } from "../text/plain-text";

/** Something that others have changed, and that an update was to correct. */
export interface Revert {
  /** Which field of what, and who changed it: what is reverted again and again has the same. */
  key: string;
  /** What a repair did about it, for Events; absent where a poll has words for it. */
  repaired?: string;
  /** The state of a conflict over it. */
  conflict: string;
}

const LONGEST_VALUE = 60;

/**
 * What an update has corrected.
 *
 * @param missing the ids of objects that were deleted
 * @param polled what a poll says of what no watch shows, in its own words
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

/** What an update has written and admission has changed at once: it will be so after each write. */
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
  const shown = (value: unknown) => (hasSecret ? "…" : shortValue(value, LONGEST_VALUE));
  const wanted = shown(values.wanted);
  const live = values.live === undefined ? "nothing" : shown(values.live);
  const who = by === ADMISSION ? ": admission changed it" : by === undefined ? "" : `: set by ${by}`;
  return {
    key: `${urn} ${field} ${by ?? ""}`,
    ...((isObject || polled === undefined) && {
      repaired: `${what}: ${field} ${live} → ${wanted}${by === undefined ? "" : ` (${by})`}`,
    }),
    conflict: `${what}: ${field} is ${live} in place of ${wanted}${who}`,
  };
}

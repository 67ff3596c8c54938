import { TerminalError } from "../../providers/errors";
import type { LiveObject } from "../../providers/kubernetes/client";
import { FORMER_STACK_ANNOTATION } from "../../stacks/contract/annotations";
import { type AnyKind, adoptsAfterCrash, statusOf } from "../../stacks/contract/kind";
import { type CommonStatus, objectKey, stackName } from "../../stacks/contract/object";

/** An object's status, without the record of a stack that is not its own: what is in that one is adopted, as after a crash. */
export function ownStatus(kind: AnyKind, object: LiveObject): CommonStatus {
  const { stack, ...others } = statusOf(object);
  const isOwn = stack?.name === stackName(kind, objectKey(object.metadata));
  return { ...others, ...(isOwn && { stack }) };
}

/** @throws TerminalError `FormerStack` when the resources are in another stack, and nothing would lead to them any more */
export function refuseFormerStack(kind: AnyKind, object: LiveObject): void {
  if (ownStatus(kind, object).stack !== undefined || adoptsAfterCrash(kind)) return;
  const number = object.metadata.annotations?.[FORMER_STACK_ANNOTATION];
  const former = statusOf(object).stack?.name ?? (number && `number ${number} of its namespace`);
  if (former === undefined) return;
  throw new TerminalError(
    "FormerStack",
    `its resources are in the stack ${former}, which this version does not use: delete the object with the version of ` +
      `Kindstack that made it, or remove the annotation ${FORMER_STACK_ANNOTATION} and status.stack to leave them unmanaged`,
  );
}

import type { KeyObject } from "node:crypto";
import type { LiveObject } from "../../providers/kubernetes/client";
import { programDigest } from "../../stacks/contract/digest";
import type { PreviewResult } from "../automation/engine";
import { changesAnything, orphansBeside } from "./orphans";
import { type PlanBasis, planDigests } from "./plan-digest";
import type { ObjectPlan } from "./report";

/** A preview of one object, and what else is part of a plan. */
export interface Previewed extends Pick<PlanBasis, "kind" | "object" | "operation" | "resources" | "references"> {
  preview: PreviewResult;
  /** The object's live resources; undefined where they cannot be read. */
  owned: readonly LiveObject[] | undefined;
}

/** The digests of the plan that the operator makes in a cluster that is as it is now; of what changes nothing, none. */
export async function proposedDigests(
  key: () => Promise<KeyObject>,
  { preview, owned, ...basis }: Previewed,
): Promise<Partial<Pick<ObjectPlan, "digest" | "group">>> {
  const { changes, failures, observed = new Map() } = preview;
  if (failures.length > 0 || owned === undefined) return {};
  const orphans = orphansBeside(owned, changes, basis.operation);
  if (!changesAnything(changes, orphans)) return {};
  const program = programDigest(basis.kind);
  const { digest, group } = planDigests(await key(), { ...basis, program, changes, observed, orphans });
  return { digest, group };
}

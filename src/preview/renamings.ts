import { kindName } from "../../stacks/contract/kind";
import type { Candidate } from "./plan";
import type { ObjectPlan } from "./report";

/** Notes removed and new objects that differ only in their names: the author may have meant a rename. */
export function noteRenamings(plans: readonly ObjectPlan[], candidates: readonly Candidate[]): void {
  const specOf = ({ kind, manifest }: Candidate) => `${kindName(kind)} ${JSON.stringify(manifest.spec)}`;
  const made = new Map<string, ObjectPlan>();
  for (const [index, candidate] of candidates.entries()) {
    const plan = plans[index];
    if (plan?.action === "create" && !candidate.removed) made.set(specOf(candidate), plan);
  }
  for (const [index, candidate] of candidates.entries()) {
    const [from, to] = [plans[index], candidate.removed ? made.get(specOf(candidate)) : undefined];
    if (from === undefined || to === undefined) continue;
    from.notes.push(`renamed to ${to.name}: its resources are not moved there`);
    to.notes.push(`renamed from ${from.name}: it gets new resources`);
  }
}

import type { Cause } from "./conditions";
import type { Facts } from "./facts";

/** Why a plan was made: all causes but that something has failed before. */
export type PlanCause = Exclude<Cause, "Retrying">;

/** The reasons of plans. */
const REASONS: Readonly<Record<PlanCause, string>> = {
  Creating: "Created",
  Updating: "SpecChanged",
  ProgramChanged: "ProgramChanged",
  Requested: "Requested",
  Refreshing: "Drifted",
  Repairing: "Drifted",
};

/** The reason of a plan that an update would make. One that is tried again has the reason that it had at first. */
export function reasonOf(facts: Facts, cause: Cause): string {
  if (facts.status.stack === undefined) return REASONS.Creating;
  return REASONS[cause === "Retrying" ? plannedCause(facts) : cause];
}

/** Why the plan of an object was made. Its reason tells; where it is lost, what differs does. */
export function plannedCause({ planReason, drifted, status, programDigest }: Facts): PlanCause {
  if (planReason === "Drifted") return drifted.length > 0 ? "Repairing" : "Refreshing";
  const causes = Object.keys(REASONS) as PlanCause[];
  const known = causes.find((cause) => REASONS[cause] === planReason);
  if (known !== undefined) return known;
  if (drifted.length > 0) return "Repairing";
  return status.stack?.program === programDigest ? "Updating" : "ProgramChanged";
}

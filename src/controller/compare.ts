import { parseObject } from "../../stacks/contract/kind";
import { planUpdate, refuseUnknown } from "../plan/plan";
import { readInputs } from "../plan/view";
import { isOutdated, loggedFailure, type Reconcile } from "./context";
import { objectForUpdate } from "./missing-state";
import type { Outcome } from "./outcome";
import { bindProgram } from "./program";
import { planRequest } from "./view";

/** Finds out what an update would do, with what has drifted, and does nothing: neither to the object nor to its stack. */
export async function executeComparison(reconcile: Reconcile): Promise<Outcome> {
  const { context, object, logger, signal } = reconcile;
  const { kind } = context;
  try {
    const request = planRequest(reconcile, objectForUpdate(reconcile));
    const parsed = parseObject(kind, object);
    const program = bindProgram(reconcile, parsed, await readInputs(request.view, kind, parsed))(object);
    const plan = await planUpdate({ ...request, program, refresh: true, binds: false });
    if (plan.failures.length > 0) return { type: "compared", resources: [], failures: plan.failures };
    refuseUnknown(plan);
    return { type: "compared", resources: plan.resources.map(({ shown }) => shown), failures: [] };
  } catch (error) {
    if (isOutdated(error) || signal.aborted) return { type: "stale" };
    return { type: "compared", resources: [], failures: [loggedFailure(error, logger)] };
  }
}

import { parseServed } from "../../stacks/contract/kind";
import { refuseUnknown } from "../plan/plan";
import type { Action } from "./action";
import { isOutdated, loggedFailure, type Reconcile } from "./context";
import { executeDestroy } from "./destroy";
import type { Outcome } from "./outcome";
import { refuse } from "./refuse";
import { ObjectStack } from "./stack";
import { executeUpdate } from "./update";

/** Does what was decided. What came of it is recorded afterwards. */
export async function execute(reconcile: Reconcile, action: Action): Promise<Outcome> {
  const { context, item, object, state, logger } = reconcile;
  const refused = await refuse(reconcile, action);
  if (refused !== undefined) return refused;
  const stack = new ObjectStack(reconcile);
  switch (action.type) {
    case "nothing":
    case "backOff":
      return { ...action, type: "rests" };
    case "pause":
      return { ...action, type: "rests", requeueAfterMs: 0 };
    case "wait":
      return { ...action, type: "waits", failures: (await state.blockers?.describe(context)) ?? [] };
    case "recordOrphan":
      await context.writer.recordOrphaned(object, state.writes);
      return { type: "orphanRecorded" };
    case "addFinalizer":
      await context.writer.addFinalizer(object, state.writes);
      logger.info("finalizer restored");
      return { type: "finalizerAdded" };
    case "compare":
      return executeComparison(reconcile, stack);
    case "update":
    case "finish":
      if (action.onlyProgram && context.rollout?.begin(item.key) === false) return { type: "notRolledOut" };
      return executeUpdate(reconcile, stack, action);
    case "destroy":
      return executeDestroy(reconcile, stack, action);
  }
}

/** Finds out what an update would do, with what has drifted, and does nothing: neither to the object nor to its stack. */
async function executeComparison(reconcile: Reconcile, stack: ObjectStack): Promise<Outcome> {
  const { context, object, logger, signal } = reconcile;
  try {
    const parsed = await parseServed(context.kind, object);
    const program = stack.program(parsed, await stack.inputs(parsed))(object);
    const plan = await stack.planUpdate(program, { binds: false });
    if (plan.failures.length > 0) return { type: "compared", resources: [], failures: plan.failures };
    refuseUnknown(plan);
    return { type: "compared", resources: plan.resources.map(({ shown }) => shown), failures: [] };
  } catch (error) {
    if (isOutdated(error) || signal.aborted) return { type: "stale" };
    return { type: "compared", resources: [], failures: [loggedFailure(error, logger)] };
  }
}

import type { Action } from "./action";
import { executeComparison } from "./compare";
import type { Reconcile } from "./context";
import { executeDestroy } from "./destroy";
import type { Outcome } from "./outcome";
import { backendConditions, refuse } from "./refuse";
import { executeUpdate } from "./update";

/** Does what was decided. What came of it is recorded afterwards. */
export async function execute(reconcile: Reconcile, action: Action): Promise<Outcome> {
  const { context, item, object, state, logger } = reconcile;
  if (reconcile.facts.orphaned && !reconcile.facts.isTombstone && reconcile.facts.mode !== "Observe")
    await context.writer.recordOrphaned(object, state.writes);
  const refused = await refuse(reconcile, action);
  if (refused !== undefined) return refused;
  switch (action.type) {
    case "nothing":
    case "backOff":
      return { ...action, type: "rests", conditions: [...backendConditions(reconcile), ...action.conditions] };
    case "pause":
      return { ...action, type: "rests", requeueAfterMs: 0 };
    case "wait":
      return { ...action, type: "waits", failures: (await state.blockers?.describe(context)) ?? [] };
    case "addFinalizer":
      await context.writer.addFinalizer(object, state.writes);
      logger.info("finalizer restored");
      return { type: "finalizerAdded" };
    case "compare":
      return executeComparison(reconcile);
    case "update":
      if (action.onlyProgram && context.rollout?.begin(item.key) === false) return { type: "notRolledOut" };
      return executeUpdate(reconcile, action);
    case "destroy":
      return executeDestroy(reconcile, action);
  }
}

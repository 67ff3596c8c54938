import { executeComparison } from "./compare";
import type { Reconcile } from "./context";
import { executeDestroy } from "./destroy";
import type { Outcome } from "./outcome";
import type { Plan } from "./plan";
import { executeUpdate } from "./update";

/** Does what was decided. What came of it is recorded afterwards. */
export async function execute(reconcile: Reconcile, plan: Plan): Promise<Outcome> {
  const { context, item, object, state, logger } = reconcile;
  if (reconcile.facts.orphaned && !reconcile.facts.isTombstone && reconcile.facts.mode !== "Observe")
    await context.writer.recordOrphaned(object, state.writes);
  switch (plan.type) {
    case "nothing":
    case "backOff":
      return { ...plan, type: "rests" };
    case "pause":
      return { ...plan, type: "rests", requeueAfterMs: 0 };
    case "wait":
      return { ...plan, type: "waits", failures: (await state.blockers?.describe(context)) ?? [] };
    case "finalize":
      await context.writer.addFinalizer(object, state.writes);
      logger.info("finalizer restored");
      return { type: "finalized" };
    case "compare":
      return executeComparison(reconcile);
    case "update":
      if (plan.onlyProgram && context.rollout?.begin(item.key) === false) return { type: "notRolledOut" };
      return executeUpdate(reconcile, plan);
    case "destroy":
      return executeDestroy(reconcile, plan);
  }
}

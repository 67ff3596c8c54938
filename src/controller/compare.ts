import type { Manifest } from "../../providers/kubernetes/client";
import { lookUp } from "../../providers/kubernetes/connection";
import { known, type Lookup } from "../../providers/kubernetes/lookup";
import { parseObject } from "../../stacks/contract/kind";
import { stackName } from "../../stacks/contract/object";
import type { PlannedChange } from "../automation/planned-changes";
import { type Changing, type PlannedResource, plannedResources } from "../preview/effects";
import type { ResourcePlan } from "../preview/report";
import { describeValue } from "../text/plain-text";
import { isOutdated, loggedFailure, type Reconcile } from "./context";
import { objectForUpdate } from "./missing-state";
import type { Outcome } from "./outcome";
import { bindProgram, readProgramInputs } from "./program";

/** Finds out what an update would do, with what has drifted, and does nothing: neither to the object nor to its stack. */
export async function executeComparison(reconcile: Reconcile): Promise<Outcome> {
  const { context, item, object, logger, signal } = reconcile;
  const { engine, kind } = context;
  try {
    const parsed = parseObject(kind, object);
    const program = bindProgram(reconcile, parsed, await readProgramInputs(reconcile, parsed))(object);
    const { sdkRuntime } = kind.capabilities;
    const options = { refresh: true, signal, sdkRuntime, object: objectForUpdate(reconcile) };
    const preview = await engine.preview(stackName(kind, item.key), program, options);
    if (preview.failures.length > 0) return { type: "compared", resources: [], failures: preview.failures };
    const planned = await effectsOf(reconcile, preview.changes, { removed: false, orphaned: false });
    return { type: "compared", resources: planned.map(({ shown }) => shown), failures: [] };
  } catch (error) {
    if (isOutdated(error) || signal.aborted) return { type: "stale" };
    return { type: "compared", resources: [], failures: [loggedFailure(error, logger)] };
  }
}

/** What changes that a preview tells of do to what is alive. */
export function effectsOf(
  { context: { client, kind }, object }: Reconcile,
  changes: readonly PlannedChange[],
  effect: Pick<Changing, "removed" | "orphaned">,
): Promise<PlannedResource[]> {
  // What cannot be looked up is tried again, not planned by what is known.
  const look = async (manifest: Manifest): Promise<Lookup> => {
    const live = await known(lookUp(client, manifest));
    return live === undefined ? { outcome: "absent" } : { outcome: "found", object: live };
  };
  const changing = { kind, uid: object.metadata.uid, ...effect };
  return plannedResources(changes, { look }, changing, []);
}

const SHOWN_FIELDS = 3;

/**
 * `update Deployment deployment/web: spec.replicas 3 → 1`: what would happen to a resource. Values of what is not the object's yet
 * are not in it: those who may read a status need not be allowed to get that.
 */
export function describePlanned({ operation, type, name, fields: all }: ResourcePlan): string {
  const fields = operation === "create" ? [] : all;
  const shown = fields.slice(0, SHOWN_FIELDS).map(({ path, before, after }) => {
    const from = operation === "adopt" ? "" : `${describeValue(before)} `;
    return `${path} ${from}→ ${describeValue(after)}`;
  });
  const more = fields.length > SHOWN_FIELDS ? [`${fields.length - SHOWN_FIELDS} more fields`] : [];
  const changes = [...shown, ...more].join(", ");
  return `${operation} ${type} ${name}${changes && `: ${changes}`}`;
}

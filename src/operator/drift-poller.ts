import timers from "node:timers/promises";
import type { Logger } from "pino";
import { failureOf } from "../../providers/errors";
import type { LiveObject } from "../../providers/kubernetes/client";
import { findCondition } from "../../stacks/contract/condition";
import { kindName, statusOf } from "../../stacks/contract/kind";
import { type KindObject, objectKey } from "../../stacks/contract/object";
import { isSettled } from "../../stacks/contract/readiness";
import type { Controller } from "../controller/controller";
import { objectItem } from "../controller/object-item";

/**
 * Finds drift that no watch shows ({@link ExternalResources.findDrift}), until `signal` is aborted.
 *
 * @param controllers read at each poll: they may come and go
 */
export async function pollDrift(
  controllers: () => Iterable<Controller>,
  intervalMs: number,
  logger: Logger,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await timers.setTimeout(intervalMs, undefined, { signal }).catch(() => {});
    for (const controller of [...controllers()]) if (!signal.aborted) await compare(controller, logger);
  }
}

async function compare(controller: Controller, logger: Logger): Promise<void> {
  reconsiderServed(controller);
  const { kind } = controller;
  const { external } = kind.capabilities;
  const settled = controller
    .list()
    // Where watches show everything, only those are told that say otherwise.
    .filter((object) => external !== undefined || controller.unseenOf(object) !== undefined || isDriftUnknown(object))
    .filter((object) => isSettled(object) && !object.metadata.deletionTimestamp)
    .filter(({ metadata }) => controller.holds(objectKey(metadata)));
  if (settled.length === 0) return;
  try {
    const found = await external?.findDrift(settled as unknown as KindObject[]);
    for (const object of settled) {
      const { uid } = object.metadata;
      controller.driftPolled(object, found?.drifted.get(uid), found?.unknown.get(uid) ?? controller.unseenOf(object));
    }
  } catch (error) {
    logger.warn({ err: error, kind: kindName(kind) }, "could not look for drift");
    for (const object of settled) controller.driftPolled(object, undefined, failureOf(error));
  }
}

/** No event tells that a type is served again: what has failed for the lack of it is tried again. */
function reconsiderServed(controller: Controller): void {
  for (const object of controller.list()) {
    const stalled = findCondition(statusOf(object).conditions, "Stalled");
    if (stalled?.reason !== "UnknownKind" || !controller.holds(objectKey(object.metadata))) continue;
    if (controller.unserved.length > 0 || controller.unseenOf(object) !== undefined) continue;
    controller.reconsider(objectItem(controller.kind, object.metadata));
  }
}

function isDriftUnknown(object: LiveObject): boolean {
  return findCondition(statusOf(object).conditions, "DriftUnknown") !== undefined;
}

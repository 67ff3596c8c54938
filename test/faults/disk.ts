import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { LiveObject } from "../../providers/kubernetes/client";
import { eventually } from "../e2e/eventually";
import {
  apply,
  conditionOf,
  edit,
  get,
  namespace,
  remove,
  tenant,
  uniqueName,
  untilCondition,
  untilGone,
  untilReady,
} from "../e2e/objects";
import { type TestOperator, useOperator } from "../e2e/operator";

/** A small file system of its own for the state, which nobody but the operator and its children sees. */
const SMALL_DISK = ["sh", "-c", 'mount -t tmpfs -o size=256k none "$0" && exec "$@"'];
const ALONE = ["unshare", "--user", "--map-root-user", "--mount"];
/** Not where users may not make namespaces of their own, or there are none. */
const isPossible = spawnSync(ALONE[0] as string, [...ALONE.slice(1), "true"]).status === 0;

const SAYS_SO = /no space left on device/i;

/** What an operator does while there is no room for its state, here the least of it, or all. */
export function describeFullDisk({ isLong }: { isLong: boolean }): void {
  describe.runIf(isPossible)("a state backend whose disk is full", () => {
    const operator = useSmallDisk();

    /** As the operator sees it. */
    const filler = () => path.join(`/proc/${operator.pid}/root`, operator.stateDirectory, "filler");

    /** Leaves so many bytes of the disk free. */
    function fill(leave: number): void {
      const file = fs.openSync(filler(), "w");
      try {
        for (;;) fs.writeSync(file, Buffer.alloc(4096));
      } catch (error) {
        expect(error).toMatchObject({ code: "ENOSPC" });
      }
      fs.ftruncateSync(file, fs.fstatSync(file).size - leave);
      fs.closeSync(file);
    }
    const makeRoom = () => fs.rmSync(filler());

    function expectToSaySo(object: LiveObject): void {
      expect(conditionOf(object, "Ready").message).toMatch(SAYS_SO);
      expect(conditionOf(object, "Reconciling").status).toBe("True");
    }

    // No room for its first file, and none for its lock.
    it.each(isLong ? [0, 4096] : [4096])(
      "with %i bytes left, is what a new object says until there is room",
      async (left) => {
        const object = tenant(uniqueName("tenant"));
        fill(left);
        await apply(object);
        expectToSaySo(await untilCondition(object, "Ready", "False"));
        makeRoom();
        await untilReady(object);
      },
    );

    // The CLI itself tries for some time to save a checkpoint.
    if (isLong)
      it("which was not when an update began, only delays it", async () => {
        const object = tenant(uniqueName("tenant"));
        fill(8192);
        await apply(object);
        await eventually(() => expect(operator.updates()).not.toEqual([]));
        await delay(2_000);
        expect(conditionOf(await get(object), "Reconciling").status).toBe("True");
        makeRoom();
        await untilReady(object);
      });

    if (isLong)
      it("is what an object says that is changed or deleted; what it made stays until there is room", async () => {
        const [changed, deleted] = [tenant(uniqueName("tenant")), tenant(uniqueName("tenant"))];
        const made = [changed, deleted].map(({ metadata }) => namespace(metadata.name as string));
        await Promise.all([changed, deleted].map(apply));
        await Promise.all([changed, deleted].map(untilReady));
        fill(0);
        await Promise.all([edit(changed, { spec: { adminEmail: "other@example.com" } }), remove(deleted)]);
        expectToSaySo(await untilCondition(changed, "Ready", "False"));
        expectToSaySo(await untilCondition(deleted, "Ready", "False", "DeletionFailed"));
        await Promise.all(made.map(get));

        makeRoom();
        await untilReady(changed);
        await untilGone(deleted);
        await get(namespace(changed.metadata.name as string));
        await untilGone(namespace(deleted.metadata.name as string));
      });
  });
}

function useSmallDisk(): TestOperator {
  const operator: TestOperator = useOperator({
    args: ["--concurrency", "4"],
    get wrapper() {
      return [...ALONE, ...SMALL_DISK, operator.stateDirectory];
    },
  });
  return operator;
}

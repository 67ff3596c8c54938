import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { LiveObject } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { conditionOf, untilCondition, untilGone, untilReady } from "../e2e/conditions";
import { namespace, tenant, uniqueName } from "../e2e/manifests";
import { apply, edit, get, remove } from "../e2e/objects";
import { type TestOperator, useOperator } from "../e2e/operator";

/** A small file system of its own in place of a directory, which no one but the operator and its children sees. */
const smallDisk = (size: string, directory: string) => [
  "sh",
  "-c",
  `mkdir -p "$0" && mount -t tmpfs -o size=${size} none "$0" && exec "$@"`,
  directory,
];
const ALONE = ["unshare", "--user", "--map-root-user", "--mount"];
/** Not where users may not make namespaces of their own, or there are none. */
const isPossible = spawnSync(ALONE[0] as string, [...ALONE.slice(1), "true"]).status === 0;

const SAYS_SO = /no space left on device/i;

/** What an operator does while there is no room for its state, here the least of it, or all. */
export function describeFullDisk({ isLong }: { isLong: boolean }): void {
  describe.runIf(isPossible)("a state backend whose disk is full", () => {
    const operator = useSmallDisk("256k", ({ stateDirectory }) => stateDirectory);
    const { fill, makeRoom } = diskOf(operator, operator.stateDirectory);

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
        const expectToRun = async () => expect(conditionOf(await get(object), "Reconciling").status).toBe("True");
        await eventually(expectToRun);
        await delay(2_000);
        await expectToRun();
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
        await Promise.all([edit(changed, OTHER_ADMIN), remove(deleted)]);
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

  describe.runIf(isPossible)("a work directory whose disk is full", () => {
    const operator = useSmallDisk("32m", ({ workDirectory }) => workDirectory);
    const { fill } = diskOf(operator, operator.workDirectory);

    it("keeps the Pulumi server from nothing, as it writes nothing there", async () => {
      const { added, changed, deleted } = await threeTenants();
      fill(0);
      await Promise.all([apply(added), edit(changed, OTHER_ADMIN), remove(deleted)]);
      await Promise.all([added, changed].map(untilReady));
      await untilGone(deleted);
      await untilGone(namespace(deleted.metadata.name as string));
    });
  });
}

const OTHER_ADMIN = { spec: { adminEmail: "other@example.com" } };

/** Three Tenants, of which the last two are made already. */
async function threeTenants(): Promise<{ added: Tenant; changed: Tenant; deleted: Tenant }> {
  const [added, changed, deleted] = [
    tenant(uniqueName("tenant")),
    tenant(uniqueName("tenant")),
    tenant(uniqueName("tenant")),
  ];
  await Promise.all([changed, deleted].map(apply));
  await Promise.all([changed, deleted].map(untilReady));
  return { added, changed, deleted };
}

type Tenant = ReturnType<typeof tenant>;

function expectToSaySo(object: LiveObject): void {
  expect(conditionOf(object, "Ready").message).toMatch(SAYS_SO);
  expect(conditionOf(object, "Reconciling").status).toBe("True");
}

/** The small file system of an operator, which is in place of this directory. */
function diskOf(operator: TestOperator, directory: string): { fill(leave: number): void; makeRoom(): void } {
  /** As the operator sees it. */
  const filler = () => path.join(`/proc/${operator.pid}/root`, directory, "filler");
  return {
    /** Leaves so many bytes of the disk free. */
    fill(leave) {
      const file = fs.openSync(filler(), "w");
      try {
        for (;;) fs.writeSync(file, Buffer.alloc(4096));
      } catch (error) {
        expect(error).toMatchObject({ code: "ENOSPC" });
      }
      fs.ftruncateSync(file, fs.fstatSync(file).size - leave);
      fs.closeSync(file);
    },
    makeRoom: () => fs.rmSync(filler()),
  };
}

function useSmallDisk(
  size: string,
  directoryOf: (operator: TestOperator) => string,
  env: Record<string, string> = {},
): TestOperator {
  const operator: TestOperator = useOperator({
    args: ["--concurrency", "4"],
    env,
    get wrapper() {
      return [...ALONE, ...smallDisk(size, directoryOf(operator))];
    },
  });
  return operator;
}

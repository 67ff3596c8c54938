import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { resolveBinary } from "../../src/toolchain/resolve";
import { stackName } from "../../stacks/contract/object";
import { tenant as tenantKind } from "../../stacks/kinds/tenant/kind";
import { applyUntilReady, conditionOf, removeUntilGone, untilCondition, untilReady } from "./conditions";
import { namespace, tenant, uniqueName } from "./manifests";
import { edit, find } from "./objects";
import { useOperator } from "./operator";

/* The operator where the engine in Go was not built: the same program, by Pulumi's CLI. */
const operator = useOperator({ env: { KINDSTACK_ENGINE: "automation-api" } });

it("a condition names the command that removes a stale lock, and after it the object is updated", async () => {
  const object = tenant(uniqueName("locked"), { namespaces: [] });
  await applyUntilReady(object);
  const stack = stackName(tenantKind, object.metadata.name ?? "");
  const locks = path.join(operator.stateDirectory, ".pulumi/locks/organization/kindstack", stack);
  fs.mkdirSync(locks, { recursive: true });
  const lock = { pid: 1, username: "someone", hostname: "elsewhere", timestamp: new Date().toISOString() };
  fs.writeFileSync(path.join(locks, "74444608-23b4-486f-8630-2d111fa7ff08.json"), JSON.stringify(lock));
  await edit(object, { spec: { namespaces: [uniqueName("more")] } });
  const locked = await untilCondition(object, "Ready", "False", "Locked");
  const { message } = conditionOf(locked, "Ready");
  const command = /run `pulumi (cancel --stack \S+)`/.exec(message)?.[1]?.split(" ") ?? [];
  execFileSync(await resolveBinary("pulumi"), [...command, "--yes"], {
    cwd: operator.directory,
    env: { ...process.env, PULUMI_BACKEND_URL: `file://${operator.stateDirectory}` },
  });
  await untilReady(object);
});

it("an operator on the stock Automation API makes, changes and deletes", async () => {
  const [first, second] = [uniqueName("first"), uniqueName("second")];
  const object = tenant(uniqueName("tenant"), { namespaces: [first] });
  await applyUntilReady(object);
  expect(operator.log).toContain("Automation API runs one update at a time");

  await edit(object, { spec: { namespaces: [first, second] } });
  const ready = await untilReady(object);
  expect(conditionOf(ready, "Ready").status).toBe("True");
  expect(await find(namespace(second))).toHaveProperty("metadata.uid");

  await removeUntilGone(object);
  expect(await find(namespace(first))).toBeUndefined();
});

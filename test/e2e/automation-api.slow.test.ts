import { expect, it } from "vitest";
import {
  apply,
  conditionOf,
  edit,
  find,
  namespace,
  remove,
  tenant,
  uniqueName,
  untilGone,
  untilReady,
} from "./objects";
import { useOperator } from "./operator";

/* The operator where the engine in Go was not built: the same program, by Pulumi's CLI. */
const operator = useOperator({ env: { KINDSTACK_ENGINE: "automation-api" } });

it("an operator on the stock Automation API makes, changes and deletes", { timeout: 300_000 }, async () => {
  const [first, second] = [uniqueName("first"), uniqueName("second")];
  const object = tenant(uniqueName("tenant"), { namespaces: [first] });
  await apply(object);
  await untilReady(object);
  expect(operator.log).toContain("Automation API runs one update at a time");

  await edit(object, { spec: { namespaces: [first, second] } });
  const ready = await untilReady(object);
  expect(conditionOf(ready, "Ready").status).toBe("True");
  expect(await find(namespace(second))).toHaveProperty("metadata.uid");

  await remove(object);
  await untilGone(object);
  expect(await find(namespace(first))).toBeUndefined();
});

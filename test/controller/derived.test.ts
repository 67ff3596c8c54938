import { expect, it } from "vitest";
import type { LiveObject } from "../../providers/kubernetes/client";
import { Derived } from "../../src/controller/open-controller";

const objectOf = (name: string) => ({ metadata: { name } }) as LiveObject;

it("counts an object of which nothing can be derived for each value, and tells why", async () => {
  const failed: unknown[] = [];
  const derived = new Derived({
    derive: async ({ metadata: { name } }) => {
      if (name === "odd") throw new Error("ended");
      return [name];
    },
    failed: (object, error) => failed.push([object.metadata.name, (error as Error).message]),
  });
  const [odd, other] = [objectOf("odd"), objectOf("other")];
  await derived.prepare([odd, other]);
  expect(failed).toEqual([["odd", "ended"]]);
  const isFound = (object: LiveObject, value: string) =>
    derived.of(object).some((own) => Derived.mayHave(value).includes(own));
  expect([isFound(odd, "any"), isFound(other, "other"), isFound(other, "any")]).toEqual([true, true, false]);
  expect([derived.isUnknown(odd), derived.isUnknown(other)]).toEqual([true, false]);
});

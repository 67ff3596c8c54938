import fc from "fast-check";
import { Compile } from "typebox/compile";
import { describe, expect, it } from "vitest";
import { kindName } from "../../stacks/contract/kind";
import { removeUntilGone } from "../e2e/conditions";
import { memcached, namespace, podSet, postgresWriter, uniqueName } from "../e2e/manifests";
import { apply, create } from "../e2e/objects";
import { changingKinds } from "./changing-kinds";
import { expectNoBugs, follow, sequences, untilSettled, usePlace } from "./generated";
import { expectNothingOf } from "./scenario";

/* A few of the sequences of `generated.slow.test.ts`, always the same. */

const SEED = 20261122;

const place = usePlace();

describe.each(changingKinds.map((changing) => ({ ...changing, name: kindName(changing.kind) })))(
  "what is generated for $name",
  ({ kind, sound, accepted, refused }) => {
    const validator = Compile(kind.spec);

    it("is what the schema says", () => {
      const once = { seed: SEED, numRuns: 100 };
      expect(fc.sample(fc.oneof(sound, accepted), once).filter((spec) => !validator.Check(spec))).toEqual([]);
      const doubled = (fault: string) => fault === "is there twice"; // which only the API server sees
      expect(fc.sample(refused, once).filter(({ value, fault }) => validator.Check(value) && !doubled(fault))).toEqual(
        [],
      );
    });
  },
);

describe("an object whose spec is changed", () => {
  it.concurrent.each(changingKinds.map((changing) => [kindName(changing.kind), changing] as const))(
    "and changed back, and deleted: %s",
    async (_, changing) => {
      for (const sequence of fc.sample(sequences(changing), { seed: SEED, numRuns: 1 })) {
        await follow(changing, sequence, place);
      }
      expectNoBugs(place.operator.log);
    },
  );
});

describe("a namespace", () => {
  /** A namespace with an object of each kind in it, one of which cannot be applied. */
  const filled = async () => {
    const name = uniqueName("ending");
    await create(namespace(name));
    const objects = [
      postgresWriter(`${name}-a`, { table: place.table }),
      postgresWriter(`${name}-b`, { table: `${place.table}_none` }),
      podSet(`${name}-pods`, 2),
      memcached(`${name}-cache`, { size: 1 }),
    ].map((object) => ({ ...object, metadata: { ...object.metadata, namespace: name } }));
    await Promise.all(objects.map(apply));
    return { name, objects };
  };

  it.concurrent.each([
    ["when all has settled", true],
    ["at once", false],
  ])("that is deleted before its objects, %s, goes with all that they made", async (_, settled) => {
    const { name, objects } = await filled();
    if (settled) await Promise.all(objects.map((object) => untilSettled(object)));
    await removeUntilGone(namespace(name));
    await expectNothingOf(name, objects, place);
  });
});

import fc from "fast-check";
import { expect, it } from "vitest";
import { kindName } from "../../stacks/contract/kind";
import { removeAllObjects } from "../e2e/objects";
import { changingKinds } from "./changing-kinds";
import { explain } from "./explain";
import { expectNoBugs, follow, sequences, usePlace } from "./generated";

/*
 * Sequences of all kinds at the same time, one round after the other, as many as `GENERATED_MINUTES` leaves time for, from
 * round `GENERATED_FROM` on; a round is always the same. With `GENERATED_ONLY` those of kinds whose name has this in it.
 */
const MINUTES = Number(process.env.GENERATED_MINUTES ?? 10);
const FROM = Number(process.env.GENERATED_FROM ?? 0);
const ONLY = process.env.GENERATED_ONLY ?? "";
const SEED = 20261121;

const place = usePlace();

it("a spec that was changed and changed back is as if it never had been", {
  timeout: (MINUTES + 10) * 60_000,
}, async () => {
  const end = Date.now() + MINUTES * 60_000;
  const chosen = changingKinds.filter(({ kind }) => kindName(kind).includes(ONLY));
  const failures: string[] = [];
  let round = FROM;
  for (; Date.now() < end; round++) {
    const followed = chosen.map(async (changing) => {
      const [sequence] = fc.sample(sequences(changing), { seed: SEED + round, numRuns: 1 });
      if (sequence === undefined) return;
      await follow(changing, sequence, place).catch((error: unknown) => {
        failures.push(`round ${round}: ${kindName(changing.kind)}`);
        console.log(`FAILED round ${round}: ${JSON.stringify(sequence)}\n${explain(error)}`);
      });
    });
    await Promise.all(followed);
    const log = place.operator.takeLog();
    if (failures.at(-1)?.startsWith(`round ${round}:`)) {
      console.log(log);
      await removeAllObjects();
    }
    expectNoBugs(log);
  }
  console.log(`rounds ${FROM} to ${round - 1}, ${chosen.length} sequences each`);
  expect(failures).toEqual([]);
});

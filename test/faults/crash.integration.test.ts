import fc from "fast-check";
import { beforeAll, expect, it } from "vitest";
import type { LiveObject } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { applyUntilReady } from "../e2e/conditions";
import { ROLE_BINDING, tenant, uniqueName } from "../e2e/manifests";
import { client, remove } from "../e2e/objects";
import {
  COUNTED,
  type Counted,
  type Fault,
  PHASES,
  type Phase,
  SCENARIO_TIMEOUT_MS,
  type Sequence,
  useCrashHarness,
} from "./crash";
import { ALL_KINDS } from "./scenario";

/*
 * A few of the points at which both the operator and the engine may crash; `crash-anywhere.slow.test.ts` goes through all
 * of them, and through crashes of one of both. A point that is not reached fails the test.
 */

const SEED = 20261121;

const harness = useCrashHarness();
let sequence: Sequence;
beforeAll(async () => {
  sequence = await harness.measure(ALL_KINDS);
}, SCENARIO_TIMEOUT_MS);

/**
 * After which write, as a share of those that the phase has. The last ones may be others' the next time, and a slow machine adds
 * one for each update that takes so long that the status tells of it.
 */
const shares = fc.sample(fc.double({ min: 0, max: 0.6, noNaN: true }), { seed: SEED, numRuns: PHASES.length });

/** In each phase after so many of something else. */
function faults(): Record<Phase, Fault> {
  const crashes = PHASES.map((phase, index) => {
    const counted = COUNTED[index % COUNTED.length] as Counted;
    // The objects are changed before anyone has seen what was made of them: a change of what is not made yet is a creation.
    const fewest = Math.min(sequence.counts[phase][counted], sequence.counts.create[counted]);
    const after = 1 + Math.floor((shares[index] as number) * fewest);
    return [phase, { crashes: [{ victim: "both", counted, after }], hurried: phase === "create" }];
  });
  return Object.fromEntries(crashes) as Record<Phase, Fault>;
}

it("a SIGKILL after some write changes nothing of how it ends", { timeout: SCENARIO_TIMEOUT_MS }, async () => {
  const reached = await harness.run(ALL_KINDS, sequence, faults());
  const missed = PHASES.filter((phase) => reached[phase]?.length !== 1);
  expect(missed, `in which no crash came: ${JSON.stringify(faults())}`).toEqual([]);
});

it("a repair begins once the status says so: after a crash nothing else would tell of it", async () => {
  const name = uniqueName("repaired");
  await applyUntilReady(tenant(name));
  const bindings = async () => (await client.list(ROLE_BINDING, { namespace: name })).items;
  const [binding, ...others] = await bindings();

  let refusals = 0;
  const written: string[] = [];
  harness.api.faults.refuse = ({ intent, url: { pathname } }) => {
    if (intent === "write" && pathname.includes("/rolebindings")) written.push(pathname);
    if (!pathname.endsWith(`/tenants/${name}/status`)) return undefined;
    refusals++;
    return 503;
  };
  await remove(binding as LiveObject);
  await eventually(() => expect(refusals).toBeGreaterThan(1));
  expect(written).toEqual([]);
  delete harness.api.faults.refuse;
  await eventually(async () => expect(await bindings()).toHaveLength(1 + others.length));
  await remove(tenant(name));
});

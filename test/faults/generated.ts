import fc from "fast-check";
import { beforeAll, expect, vi } from "vitest";
import { ApiError, type LiveObject, type Manifest } from "../../providers/kubernetes/client";
import { findCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import { uniqueName } from "../e2e/manifests";
import { apply, create, get, remove, replaceSpec } from "../e2e/objects";
import { type TestOperator, useOperator } from "../e2e/operator";
import { useDatabase } from "../providers/postgres/database";
import { type ChangingKind, generatedObject, PROTECTED, withWords } from "./changing-kinds";
import { createTables, type Existence, existenceOf, expectNothingOf, type Place } from "./scenario";
import type { Broken } from "./spec-arbitrary";
import { folderStore } from "./state-store";

/** How long an update may take, with some of others before it on a busy machine. */
const SETTLE_MS = 120_000;

/** What becomes of two objects of a kind. */
export interface Sequence {
  /** What both end with: the one was something else meanwhile, the other never. */
  first: unknown;
  refused: Broken;
  second: unknown;
  /** Whether an update to the second has to succeed. */
  isSound: boolean;
  /** What the other one is when it is deleted. */
  last: unknown;
  /** Whether no one waits for what comes of the second and the last. */
  hurried: boolean;
}

export function sequences({ sound, accepted, refused }: ChangingKind): fc.Arbitrary<Sequence> {
  const second = fc.oneof(
    fc.record({ second: sound, isSound: fc.constant(true) }),
    fc.record({ second: accepted, isSound: fc.constant(false) }),
  );
  const others = fc.record({ first: sound, refused, last: accepted, hurried: fc.boolean() });
  return fc.tuple(others, second).map(([one, other]) => ({ ...one, ...other }));
}

/** An operator with a database of its own, for the tests of one file. */
export function usePlace(): Place & { operator: TestOperator } {
  const database = useDatabase();
  const operator = useOperator({
    args: ["--concurrency", "8"],
    env: { KINDSTACK_PROTECTED_NAMESPACES: PROTECTED, PSQL_DBNAME: database.name },
  });
  const place = { operator, state: folderStore(operator), database, table: "" };
  beforeAll(async () => {
    place.table = await createTables(database);
  });
  return place;
}

/**
 * Takes two objects of a kind through a sequence.
 *
 * @throws when a spec is taken that should be refused, when the object that was changed and changed back is not what the
 * other one is, or when something of them is left after their deletion
 */
export async function follow(changing: ChangingKind, sequence: Sequence, place: Place): Promise<void> {
  const names = [uniqueName("changed"), uniqueName("unchanged")] as const;
  const prerequisites = names.flatMap((name) => changing.prerequisites?.(name) ?? []);
  await Promise.all(prerequisites.map(apply));
  const objectOf = (name: string, spec: unknown) => generatedObject(changing, { name, table: place.table, spec });
  const [changed, unchanged] = names.map((name) => objectOf(name, sequence.first)) as [Manifest, Manifest];
  const change = async (object: Manifest, spec: unknown, isSound: boolean) => {
    const { name = "" } = object.metadata;
    await replaceSpec(object, withWords(spec, { name, table: place.table }));
    if (!sequence.hurried) await untilSettled(object, { well: isSound });
  };

  await expectRefused(create(objectOf(names[0], sequence.refused.value)), sequence.refused);
  await create(changed);
  await untilSettled(changed, { well: true });
  await expectRefused(replaceSpec(changed, objectOf(names[0], sequence.refused.value).spec), sequence.refused);
  await change(changed, sequence.second, sequence.isSound);
  await Promise.all([replaceSpec(changed, changed.spec), create(unchanged)]);
  await patiently(async () => {
    const [one, other] = await Promise.all(
      [changed, unchanged].map((object) => existenceOf(object.metadata.name ?? "", [object], place)),
    );
    expect(withoutGenerations(one)).toEqual(withoutGenerations(other));
  });

  await change(unchanged, sequence.last, false);
  await Promise.all([changed, unchanged].map(remove));
  await patiently(async () => {
    for (const object of [changed, unchanged]) await expectNothingOf(object.metadata.name ?? "", [object], place);
  });
  await Promise.all(prerequisites.map(remove));
}

/** An operator that met a fault of its own says so, whatever came of it. */
export function expectNoBugs(log: string): void {
  expect(log.split("\n").filter((line) => /"unexpected error"|"errorClass":"bug"/.test(line))).toEqual([]);
}

async function expectRefused(request: Promise<LiveObject>, { field, fault }: Broken): Promise<void> {
  const answer: unknown = await request.then(
    (object) => object.spec,
    (error: unknown) => error,
  );
  if (!(answer instanceof ApiError)) {
    throw new Error(`${field} ${fault}, and is taken: ${JSON.stringify(answer) ?? String(answer)}`);
  }
  expect(answer.message, fault).toContain(field);
}

/** Waits until an update of the object as it is now has ended and the object says how; `well` when it has to succeed. */
export function untilSettled(manifest: Manifest, { well = false } = {}): Promise<void> {
  return patiently(async () => {
    const object = await get(manifest);
    const ready = findCondition(statusOf(object).conditions, "Ready");
    const isSettled = ready?.status === "True" || (!well && ready?.status === "False");
    if (!isSettled || ready?.observedGeneration !== object.metadata.generation) {
      throw new Error(`${object.kind} ${object.metadata.name} has not settled: ${JSON.stringify(object.status)}`);
    }
    expect(ready.message).not.toBe("");
  });
}

/** How often an object was changed makes no difference to what exists. */
function withoutGenerations(existence: Existence | undefined): unknown {
  const objects = existence?.objects.map(({ generation: _, status, ...rest }) => {
    return { ...rest, status: { ...status, observedGeneration: undefined } };
  });
  return { ...existence, objects };
}

function patiently<T>(assertion: () => Promise<T>): Promise<T> {
  return vi.waitFor(assertion, { timeout: SETTLE_MS, interval: 250 });
}

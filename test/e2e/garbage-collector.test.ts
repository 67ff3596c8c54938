import { describe, expect, it } from "vitest";
import type { Manifest } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { DELETION_POLICY_ANNOTATION, PAUSED_ANNOTATION } from "../../stacks/contract/annotations";
import { findCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import { MODE_ANNOTATION } from "../../stacks/contract/mode";
import { PLAN_TYPE, type Plan } from "../../stacks/contract/plan";
import { untilGone, untilReady } from "./conditions";
import { noKubectl } from "./kubectl";
import { deploymentOf } from "./manifests";
import { client, edit, find, get } from "./objects";
import { annotate, canary, type Subject, Subjects, withoutMarks } from "./subjects";

/*
 * Nothing but a stack deletes what it made: the real garbage collector and a stock kubectl, with the rights of an editor.
 */

const subjects = new Subjects();

const STATES = {
  Propose: { [MODE_ANNOTATION]: "Propose" },
  Observe: { [MODE_ANNOTATION]: "Observe" },
  paused: { [PAUSED_ANNOTATION]: "true" },
  Orphan: { [DELETION_POLICY_ANNOTATION]: "Orphan" },
};
const POLICIES = ["foreground", "background", "orphan"] as const;

/** What an object says when the operator has seen its annotation; an unseen one has the same effect. */
async function untilSeen({ object }: Subject, state: keyof typeof STATES): Promise<void> {
  await eventually(async () => {
    const { mode, conditions } = statusOf(await get(object));
    if (state === "paused") expect(findCondition(conditions, "Paused")?.status).toBe("True");
    if (state === "Propose" || state === "Observe") expect(mode).toBe(state);
  });
}

/** Waits until the garbage collector has done its work on a deletion. */
async function untilCollected(object: Manifest, mark: Manifest, policy: (typeof POLICIES)[number]): Promise<void> {
  if (policy === "foreground") await untilGone(mark);
  await eventually(async () => {
    const finalizers = (await find(object))?.metadata.finalizers ?? [];
    expect(finalizers.filter((finalizer) => finalizer === "foregroundDeletion" || finalizer === "orphan")).toEqual([]);
  });
}

describe.skipIf(noKubectl)("what objects made, after kubectl delete --cascade", () => {
  it.each(Object.keys(STATES) as (keyof typeof STATES)[])("stays as it was, %s, by each policy", async (state) => {
    const made = await Promise.all(POLICIES.map(async (policy) => ({ policy, all: await subjects.make() })));
    await Promise.all(made.flatMap(({ policy, all }) => all.map((subject) => stays(subject, state, policy))));
  });
});

async function stays(
  { kind, object, made, ...subject }: Subject,
  state: keyof typeof STATES,
  policy: (typeof POLICIES)[number],
): Promise<void> {
  const what = `${kind} ${policy}`;
  const before = await made();
  const mark = await canary(object, object.metadata.namespace ?? subjects.namespace);
  await annotate(object, STATES[state]);
  await untilSeen({ kind, object, made, ...subject }, state);

  expect(await subjects.delete(object, policy)).toMatchObject({ exitCode: 0 });
  await untilCollected(object, mark, policy);

  if (state === "Observe" || state === "Orphan") {
    await untilGone(object);
    expect(withoutMarks(await made()), what).toEqual(withoutMarks(before));
    return;
  }
  if (state === "Propose") await untilWaits(object);
  expect(await made(), what).toEqual(before);
  expect((await get(object)).metadata.deletionTimestamp).toBeDefined();

  await annotate(object, Object.fromEntries(Object.keys(STATES[state]).map((key) => [key, null])));
  await untilGone(object);
  if (policy === "orphan") expect(withoutMarks(await made()), what).toEqual(withoutMarks(before));
  else await eventually(async () => expect(gone(await made()), what).toEqual(Object.keys(before)));
}

describe.skipIf(noKubectl)("an object without its finalizer", () => {
  it("is for those who may approve: what it made stays, and another of its name has it again", async () => {
    const all = await subjects.make();
    await Promise.all(
      all.map(async ({ kind, object, made }) => {
        const before = await made();
        await annotate(object, STATES.paused);
        expect(await subjects.delete(object, "background")).toMatchObject({ exitCode: 0 });
        const refused = await subjects.patch(object, { finalizers: null });
        expect([refused.exitCode, refused.stderr], kind).toEqual([
          1,
          expect.stringMatching(/removed by the operator.*Orphan.*takes the right to approve plans\.kindstack\.dev/s),
        ]);
        expect((await get(object)).metadata.deletionTimestamp).toBeDefined();

        const mark = await canary(object, object.metadata.namespace ?? subjects.namespace);
        await edit(object, { metadata: { finalizers: null } });
        await untilGone(object);
        await untilGone(mark); // the garbage collector has seen it
        expect(await made(), kind).toEqual(before);

        const { resourceVersion: _, uid: __, ...metadata } = object.metadata;
        const applied = await subjects.run(["apply", "-f", "-"], JSON.stringify({ ...object, metadata }));
        expect(applied.exitCode, applied.stderr).toBe(0);
        await untilReady(object);
        expect(uids(await made()), kind).toEqual(uids(before));
      }),
    );
  });
});

describe("a reference to an object that another has set on what that made", () => {
  it.each(["Propose", "Observe", "paused"] as const)("is removed, %s, outside of plans", async (state) => {
    const all = await subjects.make();
    const memcached = all.find(({ kind }) => kind === "Memcached") as Subject;
    const { apiVersion, kind, metadata } = await get(memcached.object);
    const { name, uid } = metadata;
    const deployment = deploymentOf(memcached.object);
    await annotate(memcached.object, STATES[state]);
    await untilSeen(memcached, state);
    await edit(deployment, { metadata: { ownerReferences: [{ apiVersion, kind, name, uid }] } });
    await eventually(async () => expect((await get(deployment)).metadata.ownerReferences).toBeUndefined());
    await untilSeen(memcached, state);
    const synced = findCondition(statusOf(await get(memcached.object)).conditions, "Synced");
    expect(synced?.reason).not.toBe("WaitsForApproval");
  });
});

async function untilWaits(object: Manifest): Promise<void> {
  await eventually(async () => {
    const live = await get(object);
    const synced = findCondition(statusOf(live).conditions, "Synced");
    expect([synced?.reason, synced?.observedGeneration]).toEqual(["WaitsForApproval", live.metadata.generation]);
    // Plans refer to their objects: what the garbage collector deletes of them is written again.
    const plans = (await client.list(PLAN_TYPE)).items as Plan[];
    expect(plans.find(({ spec }) => spec.object.uid === live.metadata.uid)?.spec.cause.reason).toBe("Deleted");
  });
}

const gone = (made: Record<string, unknown>) => Object.keys(made).filter((id) => made[id] === undefined);
const uids = (made: Record<string, unknown>) => Object.values(made).map((state) => (state as { uid?: string })?.uid);

import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { eventually } from "../../src/testing/eventually";
import { statusOf } from "../../stacks/contract/kind";
import { MODE_ANNOTATION } from "../../stacks/contract/mode";
import { controlPlane } from "../control-plane";
import { conditionOf, conditionTypes } from "./conditions";
import { MAIN } from "./documentation";
import { uniqueName } from "./manifests";
import { eventsAbout } from "./objects";
import { kindstack } from "./operator";
import { Proposals } from "./proposals";

/*
 * Changes that wait for an approval, with the real parts: what is applied is what a user with the right to approve has allowed.
 */

const proposals = new Proposals();
const { operator } = proposals;

/** What a command prints on a terminal, where a person types this. */
function onTerminal(words: string[], typed: string): string {
  const command = [process.execPath, MAIN, ...words].map((word) => `'${word}'`).join(" ");
  const env = { ...process.env, KUBECONFIG: controlPlane().kubeconfig };
  return spawnSync("script", ["-qec", command, "/dev/null"], { input: typed, encoding: "utf8", env }).stdout;
}

/** An object that was approved and is applied. */
async function applied(text = "one"): Promise<string> {
  const name = uniqueName("note");
  await proposals.write(name, { text });
  await proposals.decide(await proposals.untilWaiting(name));
  await proposals.untilSynced(name);
  return name;
}

describe("an object whose changes wait", () => {
  it("is created as it was approved, by a user who may approve and nothing else", async () => {
    const name = uniqueName("note");
    await proposals.write(name, { text: "one" });
    const plan = await proposals.untilWaiting(name);
    expect(plan).toMatchObject({
      status: { state: "Pending" },
      spec: { cause: { reason: "Created" }, actions: { create: 1 }, steps: [{ action: "create", name }] },
    });
    const waiting = await proposals.find(name);
    expect(waiting?.metadata.finalizers).toBeUndefined();
    expect(statusOf(waiting as never)).toMatchObject({ mode: "Propose", observedGeneration: 1 });
    expect(operator.stateFiles(`${proposals.namespace}.${name}`)).toEqual([]);
    expect(await proposals.made(name)).toBeUndefined();

    await proposals.decide(plan, "Approve", { reason: "CHG-4711" });
    const done = await proposals.untilSynced(name);
    expect(await proposals.made(name)).toEqual({ text: "one", edition: "first" });
    const { digest } = plan.spec;
    expect(statusOf(done).stack?.approval).toMatchObject({ approver: "jane", digest, reason: "CHG-4711" });
    await eventually(async () => expect(await proposals.plan(name)).toBeUndefined());
    await eventually(async () => {
      const reasons = (await eventsAbout(done)).map(({ reason }) => reason);
      expect(reasons).toEqual(expect.arrayContaining(["WaitsForApproval", "Approved"]));
    });
    const words = ["history", `notes.${proposals.group}`, name, "-n", proposals.namespace, "--kinds", proposals.folder];
    const backend = { PULUMI_BACKEND_URL: `file://${operator.stateDirectory}` };
    expect(kindstack(words, backend)).toContain(`approved by jane: CHG-4711 (${digest})`);
  });

  it("tells of what runs while a change of it waits, and is previewed no more", async () => {
    const name = await applied();
    await proposals.write(name, { text: "two" });
    const plan = await proposals.untilWaiting(name);
    expect(plan.spec.steps).toMatchObject([
      { action: "update", fields: [{ path: "data.text", from: '"one"', to: '"two"' }] },
    ]);
    const object = (await proposals.find(name)) as never;
    expect(conditionOf(object, "Ready").status).toBe("True");
    expect(conditionTypes(object)).not.toContain("Reconciling");
    expect((await proposals.made(name))?.text).toBe("one");
    const previews = () => operator.metric("kindstack_engine_operations_total");
    const before = await previews();
    await proposals.owner.mergePatch(proposals.type, name, proposals.namespace, { metadata: { labels: { a: "b" } } });
    await eventually(async () => expect((await proposals.find(name))?.metadata.labels).toEqual({ a: "b" }));
    expect(await previews()).toBe(before);
    await proposals.decide(plan);
    await proposals.untilSynced(name);
    expect((await proposals.made(name))?.text).toBe("two");
  });

  it("is not changed by an approval that came before the world was another", async () => {
    const name = await applied();
    await proposals.write(name, { text: "two" });
    const former = await proposals.untilWaiting(name);
    await proposals.drift(name, { text: "of another" });
    const plan = await proposals.untilWaiting(name, former);
    expect(plan.spec.steps[0]?.fields).toMatchObject([{ from: '"of another"', to: '"two"' }]);
    await proposals.decide(former);
    await proposals.decide(plan);
    await proposals.untilSynced(name);
    expect((await proposals.made(name))?.text).toBe("two");
  });

  it("is applied at once when the mode is loosened, which its owner may not do", async () => {
    const name = await applied();
    const setMode = (user: typeof proposals.owner, mode: string | null) =>
      user.mergePatch(proposals.type, name, proposals.namespace, {
        metadata: { annotations: { [MODE_ANNOTATION]: mode } },
      });
    await setMode(proposals.owner, "Observe");
    await expect(setMode(proposals.owner, "ProposeDestructive")).rejects.toThrow(
      "loosening kindstack.dev/mode from Observe to ProposeDestructive takes the right to approve",
    );
  });

  it("is not covered by the approval of a group that was there before it, with the same difference", async () => {
    const [first, later] = [await applied(), await applied()];
    await proposals.write(first, { text: "two" });
    const plan = await proposals.untilWaiting(first);
    kindstack(["approve", "--group", plan.spec.group, "-n", proposals.namespace, "--yes"]);
    await proposals.untilSynced(first);
    await proposals.write(later, { text: "two" });
    expect((await proposals.untilWaiting(later)).spec.group).toBe(plan.spec.group);
    expect((await proposals.made(later))?.text).toBe("one");
  });

  it("is shown on a terminal, and approved when the answer is yes", async () => {
    const name = await applied();
    await proposals.write(name, { text: "two" });
    const { spec } = await proposals.untilWaiting(name);
    const words = ["approve", `notes.${proposals.group}`, name, "-n", proposals.namespace, "--kinds", proposals.folder];
    expect(() => kindstack(words)).toThrow("name what you have seen with --digest, or approve this with --yes");
    expect(onTerminal(words, "n\n")).toContain("nothing was approved");
    expect((await proposals.made(name))?.text).toBe("one");
    const shown = onTerminal(words, "y\n");
    expect(shown).toContain(`Approve Note ${proposals.namespace}/${name} ${spec.digest}? [y/N]`);
    expect(shown).toMatch(/text: "?one"? → "?two/);
    await proposals.untilSynced(name);
    expect((await proposals.made(name))?.text).toBe("two");
  });

  it("is approved from the command line", async () => {
    const name = await applied();
    await proposals.write(name, { text: "two" });
    await proposals.untilWaiting(name);
    const kind = ["--kinds", proposals.folder];
    expect(kindstack(["plans", "-n", proposals.namespace])).toContain(name);
    const shown = kindstack(["plan", `notes.${proposals.group}`, name, "-n", proposals.namespace, ...kind]);
    const [, words = ""] = /To approve it: kindstack (.*)/.exec(shown) ?? [];
    expect((await proposals.synced(name))?.message).toContain(words);
    kindstack([...words.split(" "), ...kind]);
    await proposals.untilSynced(name);
    expect((await proposals.made(name))?.text).toBe("two");
  });
});

it("an object whose destructive changes wait is updated at once by what destroys nothing, and waits before it deletes something", async () => {
  const name = uniqueName("note");
  await proposals.setMode("ProposeDestructive");
  try {
    await proposals.write(name, { text: "one", extra: true });
    await proposals.untilSynced(name);
    await proposals.write(name, { text: "two", extra: true });
    await proposals.untilSynced(name);
    expect(await proposals.made(`${name}-extra`)).toEqual({ text: "two" });
    await proposals.write(name, { text: "three" });
    const plan = await proposals.untilWaiting(name);
    expect(plan.spec.actions).toMatchObject({ update: 1, delete: 1 });
    expect(await proposals.made(`${name}-extra`)).toEqual({ text: "two" });
    await proposals.decide(plan);
    await proposals.untilSynced(name);
    expect(await proposals.made(`${name}-extra`)).toBeUndefined();
  } finally {
    await proposals.setMode("Propose");
    // The operator sees a namespace's mode by a watch: an object that is created before that is applied.
    await eventually(async () => expect((await proposals.find(name))?.status).toMatchObject({ mode: "Propose" }));
  }
});

it("a new program waits as a group, and one approval is for all of it", async () => {
  const names = await Promise.all([applied("same"), applied("same"), applied("other")]);
  proposals.edition("second");
  const plans = await Promise.all(names.map((name) => proposals.untilWaiting(name)));
  expect(new Set(plans.map(({ spec }) => spec.group)).size).toBe(1);
  expect(plans.map(({ spec }) => spec.cause.reason)).toEqual(names.map(() => "ProgramChanged"));
  expect((await proposals.made(names[0] ?? ""))?.edition).toBe("first");
  const [group = ""] = plans.map(({ spec }) => spec.group);
  const words = ["approve", "--group", group, "-n", proposals.namespace, "--kinds", proposals.folder];
  expect(() => kindstack(words)).toThrow("approve this with --yes");
  kindstack([...words, "--yes"]);
  await Promise.all(names.map((name) => proposals.untilSynced(name)));
  for (const name of names) expect((await proposals.made(name))?.edition).toBe("second");
});
